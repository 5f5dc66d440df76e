#include "chat/conversation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace dunlin::chat {
namespace {

nlohmann::ordered_json message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

}  // namespace

// A base model has no roles: the text so far is its prompt, a line for each message after the
// first.
Result<std::vector<TokenId>> Conversation::render(const Session& session,
                                                  std::size_t first_turn) const {
  if (!session.has_chat_template()) {
    std::string text;
    for (std::size_t i = first_turn; i < turns_.size(); ++i)
      text += (i == first_turn ? "" : "\n") + turns_[i].user + turns_[i].assistant;
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
  const std::size_t last = turns_.size() - 1;
  for (std::size_t first = 0; first <= last; ++first) {
    auto rendered = render(session, first);
    if (!rendered) {
      turns_.pop_back();
      return tl::unexpected(rendered.error());
    }
    std::vector<TokenId> prompt = kept_.prompt(session.tokenizer(), *rendered);
    const int size = static_cast<int>(prompt.size());
    if (size <= (first == 0 || first == last ? room : room - room / 4)) {
      turns_.erase(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(first));
      rendered_ = std::move(*rendered);
      prompt_ = prompt;
      return Prompt{std::move(prompt), static_cast<int>(first)};
    }
    if (first < last) continue;
    turns_.pop_back();
    return invalid(fmt::format(
        "the message needs {} tokens, but the context of {} leaves {} beside the answer; shorten "
        "the message, or set a larger --context",
        size, session.context_length(), room));
  }
  return invalid("there is no message");
}

void Conversation::answered(std::string text, std::vector<TokenId> tokens) {
  kept_.keep(std::move(rendered_), std::move(prompt_), text, std::move(tokens));
  turns_.back().assistant = std::move(text);
  turns_.back().answered = true;
}

void Conversation::forget_question() { turns_.pop_back(); }

void Conversation::reset() {
  turns_.clear();
  kept_.clear();
}

std::string Conversation::to_json() const {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!system_.empty()) messages.push_back(message("system", system_));
  for (const Turn& turn : turns_) {
    messages.push_back(message("user", turn.user));
    if (turn.answered) messages.push_back(message("assistant", turn.assistant));
  }
  return messages.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace dunlin::chat
