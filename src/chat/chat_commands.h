// What a line that begins with a slash does in the chat.
#pragma once

#include <string>

#include "chat/conversation.h"
#include "dunlin/status.h"

namespace dunlin::chat {

struct ChatState {
  Conversation conversation;
  bool verbose = false;
  bool has_roles = true;  // false: a base model, for which there is no system message
  bool leaving = false;
};

// Runs `line`, which begins with a slash, and gives what to tell the user.
Result<std::string> run_chat_command(const std::string& line, ChatState& state);

}  // namespace dunlin::chat
