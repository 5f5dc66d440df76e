// What the tasks of recall have in common: a prompt from a text and a question, a greedy answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "engine/request.h"
#include "frontend/session.h"

namespace dunlin::eval {

// A text, what is asked about it, and how the answer begins.
struct TaskText {
  std::string text, question;
  std::string answer_start;
};

// As one user's message with the question behind the text, where `as_chat`, in the session's chat
// template; else the text, the question and the answer's beginning, for the model to go on.
Result<std::vector<TokenId>> task_prompt(const Session& session, const TaskText& task,
                                         bool as_chat);

// The likeliest continuation of `prompt`, of at most `max_tokens`.
EngineRequest greedy_request(const Session& session, std::vector<TokenId> prompt, int max_tokens);

// What the tokens say.
std::string answer_text(const Session& session, const std::vector<TokenId>& tokens);

// Whether `answer` holds `expected` as whole words or numbers, whatever the case of ASCII letters.
bool holds_answer(std::string_view answer, std::string_view expected);

}  // namespace dunlin::eval
