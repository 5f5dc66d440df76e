// The chat in the terminal, and the answer to one prompt.
#pragma once

#include <string>

#include "frontend/session.h"
#include "frontend/types.h"

namespace dunlin::cli {

struct ChatOptions {
  GenerationOptions generation;
  std::string system;    // system message; "" for the template's own
  bool verbose = false;  // times and counts after each answer
};

// Answers one prompt on stdout as it comes. Exit code: 0, 1 with the reason on stderr, 130 after
// Ctrl-C, 141 where the reader of stdout went away. A model without a chat template completes the
// raw text, and stderr says so.
int answer_once(Session& session, const std::string& prompt, const ChatOptions& options);

// Reads messages from the terminal on standard input until its end or /bye. Keeps the conversation;
// where it outgrows the context, the oldest turns are dropped whole, and the chat says so. Exit
// code: 0, or as above where stdout can't be written.
int chat(Session& session, ChatOptions options);

}  // namespace dunlin::cli
