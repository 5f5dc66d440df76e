// The messages of one chat and their prompt: drops whole turns, oldest first, where the context
// is outgrown. Knows nothing of terminals.
#pragma once

#include <string>
#include <vector>

#include "dunlin/status.h"
#include "frontend/session.h"

namespace dunlin::cli {

class Conversation {
 public:
  explicit Conversation(std::string system) : system_(std::move(system)) {}

  struct Prompt {
    std::vector<TokenId> ids;
    int num_dropped_turns = 0;  // by this call
  };
  // The prompt for `text` as the next user message, leaving `reserve_tokens` of the context for
  // the answer. kInvalidArgument where the message alone doesn't fit; nothing is changed then.
  Result<Prompt> ask(const Session& session, const std::string& text, int reserve_tokens);

  // Ends the turn begun by ask(): what the model said, or forget it.
  void answered(std::string text);
  void forget_question();

  void reset() { turns_.clear(); }
  void set_system(std::string system) { system_ = std::move(system); }
  const std::string& system() const { return system_; }
  std::string to_json() const;  // [{"role", "content"}, ...], indented

 private:
  struct Turn {
    std::string user, assistant;
    bool answered = false;
  };
  Result<std::vector<TokenId>> render(const Session& session, std::size_t first_turn) const;

  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace dunlin::cli
