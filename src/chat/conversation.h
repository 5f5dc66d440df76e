// The messages of one chat and their prompt: drops whole turns, oldest first, where the context
// is outgrown, and keeps the tokens of what stays. Knows nothing of terminals.
#pragma once

#include <string>
#include <vector>

#include "chat/kept_tokens.h"
#include "dunlin/status.h"
#include "frontend/session.h"

namespace dunlin::chat {

class Conversation {
 public:
  explicit Conversation(std::string system) : system_(std::move(system)) {}

  struct Prompt {
    std::vector<TokenId> ids;
    int num_dropped_turns = 0;  // by this call
  };
  // The prompt for `text` as the next user message, leaving `reserve_tokens` of the context for
  // the answer. Where turns must go, a quarter of the room is freed: the next turns then find
  // their beginning computed, instead of each dropping one more. kInvalidArgument where the
  // message alone doesn't fit, or the template refuses; nothing is changed then.
  Result<Prompt> ask(const Session& session, const std::string& text, int reserve_tokens);

  // Ends the turn begun by ask(): what the model said, and in which tokens (none: not known), or
  // forget it.
  void answered(std::string text, std::vector<TokenId> tokens);
  void forget_question();

  void reset();
  // The turns stay; "" is the template's own.
  void set_system(std::string system) { system_ = std::move(system); }
  const std::string& system() const { return system_; }
  std::size_t num_turns() const { return turns_.size(); }
  std::string to_json() const;  // [{"role", "content"}, ...], indented

 private:
  struct Turn {
    std::string user, assistant;
    bool answered = false;
  };
  Result<std::vector<TokenId>> render(const Session& session, std::size_t first_turn) const;

  std::string system_;
  std::vector<Turn> turns_;
  KeptTokens kept_;
  std::vector<TokenId> rendered_, prompt_;  // of the turn begun
};

}  // namespace dunlin::chat
