#include "frontend/output_processor.h"

#include <algorithm>
#include <utility>

namespace dunlin {
namespace {

// Characters by their first bytes, so that the parts of a character that is cut over tokens count
// once.
int count_chars(const std::string& bytes) {
  return static_cast<int>(std::count_if(bytes.begin(), bytes.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

TokenLogprobText describe_token(const Tokenizer& tokenizer, TokenId id,
                                const TokenLogprobs& logprobs) {
  TokenLogprobText out;
  out.token = token_text(tokenizer, id);
  out.bytes = tokenizer.token_bytes(id, true);
  out.id = id;
  out.logprob = logprobs.logprob;
  if (!tokenizer.is_control(id)) out.num_chars = count_chars(out.bytes);
  out.top.reserve(logprobs.top.size());
  for (const auto& [top_id, top_logprob] : logprobs.top) {
    out.top.push_back(
        {token_text(tokenizer, top_id), tokenizer.token_bytes(top_id, true), top_id, top_logprob});
  }
  return out;
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  Detokenizer detokenizer(tokenizer, false, true);
  std::string text = detokenizer.push(id);
  text += detokenizer.finish();
  return text;
}

std::vector<TokenLogprobText> describe_prompt(const Tokenizer& tokenizer,
                                              const std::vector<TokenId>& prompt,
                                              const std::vector<TokenLogprobs>& logprobs) {
  std::vector<TokenLogprobText> out;
  out.reserve(prompt.size());
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    out.push_back(
        describe_token(tokenizer, prompt[i], i < logprobs.size() ? logprobs[i] : TokenLogprobs{}));
  }
  return out;
}

// The answer continues the prompt, so its first token keeps its leading space.
OutputProcessor::OutputProcessor(const Tokenizer& tokenizer, const GenerationOptions& options,
                                 int choice_idx)
    : tokenizer_(tokenizer),
      detokenizer_(tokenizer, false, false),
      stop_matcher_(options.stop),
      min_tokens_(options.sampling.min_tokens),
      choice_idx_(choice_idx) {}

TextDelta OutputProcessor::process(const TokenOutput& output) {
  TextDelta delta;
  delta.choice_idx = choice_idx_;
  delta.finish = output.finish;
  delta.error = output.error;
  delta.ended_by = output.ended_by;
  delta.stats = output.stats;
  delta.token = output.token;
  if (output.token) ++num_tokens_;
  const bool is_text = output.token && output.finish != FinishReason::kStop;
  if (is_text) {
    if (output.logprobs)
      held_logprobs_.push_back(
          {text_bytes_, describe_token(tokenizer_, *output.token, *output.logprobs)});
    push_text(detokenizer_.push(*output.token), delta);
  }
  if (output.finish != FinishReason::kNone && !stop_matcher_.matched()) {
    push_text(detokenizer_.finish(), delta);
    if (!stop_matcher_.matched()) {
      const std::string rest = stop_matcher_.finish();
      released_bytes_ += static_cast<std::int64_t>(rest.size());
      delta.text += rest;
    }
  }
  if (stop_matcher_.matched()) {
    delta.finish = FinishReason::kStop;
    delta.stop_string = stop_matcher_.matched();
    delta.error.reset();
  }
  release_logprobs(delta, delta.finish != FinishReason::kNone && !stop_matcher_.matched());
  return delta;
}

void OutputProcessor::push_text(const std::string& text, TextDelta& delta) {
  text_bytes_ += static_cast<std::int64_t>(text.size());
  const std::string certain = stop_matcher_.push(text, num_tokens_ >= min_tokens_);
  released_bytes_ += static_cast<std::int64_t>(certain.size());
  delta.text += certain;
}

void OutputProcessor::release_logprobs(TextDelta& delta, bool all) {
  const bool nothing_held = released_bytes_ == text_bytes_ && !stop_matcher_.matched();
  while (!held_logprobs_.empty() &&
         (all || nothing_held || held_logprobs_.front().text_begin < released_bytes_)) {
    delta.logprobs.push_back(std::move(held_logprobs_.front().logprobs));
    held_logprobs_.pop_front();
  }
}

}  // namespace dunlin
