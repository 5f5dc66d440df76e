#include "eval/task_prompt.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/ascii.h"

namespace dunlin::eval {
namespace {

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

}  // namespace

Result<std::vector<TokenId>> task_prompt(const Session& session, const TaskText& task,
                                         bool as_chat) {
  if (!as_chat) {
    return session.completion_prompt(
        fmt::format("{}\n\n{}\n{}", task.text, task.question, task.answer_start));
  }
  nlohmann::ordered_json message{{"role", "user"},
                                 {"content", fmt::format("{}\n\n{}", task.text, task.question)}};
  return session.chat_prompt(nlohmann::ordered_json::array({std::move(message)}), {}, true);
}

EngineRequest greedy_request(const Session& session, std::vector<TokenId> prompt, int max_tokens) {
  EngineRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  const auto ends = session.tokenizer().eos_ids();
  request.eos_ids.assign(ends.begin(), ends.end());
  return request;
}

std::string answer_text(const Session& session, const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) text += session.tokenizer().token_bytes(token);
  return text;
}

bool holds_answer(std::string_view answer, std::string_view expected) {
  const std::string text = ascii_lower(answer), wanted = ascii_lower(expected);
  for (std::size_t at = text.find(wanted); at != std::string::npos;
       at = text.find(wanted, at + 1)) {
    const std::size_t end = at + wanted.size();
    if ((at == 0 || !is_word_character(text[at - 1])) &&
        (end == text.size() || !is_word_character(text[end])))
      return true;
  }
  return false;
}

}  // namespace dunlin::eval
