// One choice's tokens to text: detokenises, looks for stop strings across token borders, holds back
// what may become one, and puts log-probabilities into words. The text is a function of the tokens
// only, so a streamed answer and a whole one are equal. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/request.h"
#include "frontend/stop_matcher.h"
#include "frontend/types.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace dunlin {

class OutputProcessor {
 public:
  // `tokenizer` must outlive the object. `choice_idx` is copied into each delta.
  OutputProcessor(const Tokenizer& tokenizer, const GenerationOptions& options, int choice_idx);

  // What this output adds to the text. A delta whose finish is not kNone is the last; it is
  // FinishReason::kStop with `stop_string` where a stop string ended it, whatever the engine says,
  // and the caller then ends the engine's request.
  TextDelta process(const TokenOutput& output);

 private:
  struct HeldLogprobs {
    std::int64_t text_begin;  // bytes of text before the token
    TokenLogprobText logprobs;
  };

  void push_text(const std::string& text, TextDelta& delta);
  void release_logprobs(TextDelta& delta, bool all);

  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  StopMatcher stop_matcher_;
  std::deque<HeldLogprobs> held_logprobs_;
  std::int64_t text_bytes_ = 0;      // out of the detokenizer
  std::int64_t released_bytes_ = 0;  // given out
  int num_tokens_ = 0;
  int min_tokens_;
  int choice_idx_;
};

// Log-probabilities of a prompt in words; entry 0 has only the token's text.
std::vector<TokenLogprobText> describe_prompt(const Tokenizer& tokenizer,
                                              const std::vector<TokenId>& prompt,
                                              const std::vector<TokenLogprobs>& logprobs);

// One token as text, its broken bytes as U+FFFD, control tokens by name.
std::string token_text(const Tokenizer& tokenizer, TokenId id);

}  // namespace dunlin
