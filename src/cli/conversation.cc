#include "cli/conversation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace dunlin::cli {
namespace {

nlohmann::ordered_json message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

}  // namespace

Result<std::vector<TokenId>> Conversation::render(const Session& session,
                                                  std::size_t first_turn) const {
  if (!session.has_chat_template()) {
    // A base model has no roles: the text so far is its prompt.
    std::string text;
    for (std::size_t i = first_turn; i < turns_.size(); ++i)
      text += turns_[i].user + turns_[i].assistant;
    return session.completion_prompt(text);
  }
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!system_.empty()) messages.push_back(message("system", system_));
  for (std::size_t i = first_turn; i < turns_.size(); ++i) {
    messages.push_back(message("user", turns_[i].user));
    if (turns_[i].answered) messages.push_back(message("assistant", turns_[i].assistant));
  }
  return session.chat_prompt(messages, nlohmann::ordered_json::object(), true);
}

Result<Conversation::Prompt> Conversation::ask(const Session& session, const std::string& text,
                                               int reserve_tokens) {
  turns_.push_back({text, "", false});
  const int room = session.context_length() - reserve_tokens;
  for (std::size_t first = 0; first < turns_.size(); ++first) {
    auto ids = render(session, first);
    if (!ids) {
      turns_.pop_back();
      return tl::unexpected(ids.error());
    }
    if (static_cast<int>(ids->size()) <= room) {
      turns_.erase(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(first));
      return Prompt{std::move(*ids), static_cast<int>(first)};
    }
    if (first + 1 == turns_.size()) {
      turns_.pop_back();
      return invalid(
          fmt::format("the message takes {} tokens and {} of the context's {} are left for it; "
                      "shorten it, or set --context",
                      ids->size(), room, session.context_length()));
    }
  }
  return invalid("there is no message");
}

void Conversation::answered(std::string text) {
  turns_.back().assistant = std::move(text);
  turns_.back().answered = true;
}

void Conversation::forget_question() { turns_.pop_back(); }

std::string Conversation::to_json() const {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!system_.empty()) messages.push_back(message("system", system_));
  for (const Turn& turn : turns_) {
    messages.push_back(message("user", turn.user));
    if (turn.answered) messages.push_back(message("assistant", turn.assistant));
  }
  return messages.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace dunlin::cli
