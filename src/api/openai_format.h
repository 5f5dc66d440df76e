// Typed answers to OpenAI's JSON: whole answers, stream chunks, usage, the model list. Everything
// returned is one line of valid UTF-8 JSON. The only place that knows the field names of answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/types.h"

namespace dunlin {

// What all parts of one answer share.
struct AnswerInfo {
  std::string id;  // "chatcmpl-..." or "cmpl-..."
  std::string model;
  std::int64_t created_unix_s = 0;
};

struct Usage {
  std::int64_t num_prompt_tokens = 0;
  std::int64_t num_output_tokens = 0;
  std::int64_t num_cached_tokens = 0;
};

// One choice of a whole answer, or what has come of it so far.
struct ChoiceText {
  std::string text;
  std::vector<TokenLogprobText> prompt_logprobs;  // completion with echo
  std::vector<TokenLogprobText> logprobs;
  FinishReason finish = FinishReason::kNone;
};

// Log-probabilities as asked for: kNone gives null.
enum class LogprobsForm { kNone, kChat, kCompletion };

std::string format_chat(const AnswerInfo& info, const std::vector<ChoiceText>& choices,
                        const Usage& usage, LogprobsForm logprobs);
std::string format_completion(const AnswerInfo& info, const std::vector<ChoiceText>& choices,
                              const Usage& usage, LogprobsForm logprobs);

// Characters of text given out before a completion chunk; text_offset goes on from there.
struct ChunkState {
  std::int64_t num_chars = 0;
};

// Chunks of a stream. `with_usage`: "usage": null in each, as include_usage wants it.
std::string format_chat_role_chunk(const AnswerInfo& info, int choice_idx, bool with_usage);
std::string format_chat_chunk(const AnswerInfo& info, int choice_idx, const ChoiceText& delta,
                              LogprobsForm logprobs, bool with_usage);
std::string format_chat_finish_chunk(const AnswerInfo& info, int choice_idx, FinishReason finish,
                                     bool with_usage);
std::string format_completion_chunk(const AnswerInfo& info, int choice_idx, const ChoiceText& delta,
                                    LogprobsForm logprobs, bool with_usage, ChunkState& state);
// Chunks of one choice that hold nothing but text, which most of a stream are: what stands around
// the text is formatted once.
class TextChunks {
 public:
  TextChunks(const AnswerInfo& info, int choice_idx, bool is_chat, bool with_usage);
  void append(std::string_view text, std::string& out) const;

 private:
  std::string before_;
  std::string after_;
};
std::string format_usage_chunk(const AnswerInfo& info, const Usage& usage, bool is_chat);

struct ModelInfo {
  std::string name;
  std::int64_t created_unix_s = 0;
  int context_length = 0;
};
std::string format_model(const ModelInfo& model);
std::string format_model_list(const ModelInfo& model);

}  // namespace dunlin
