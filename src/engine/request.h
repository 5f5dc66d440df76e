// What enters and leaves the engine: token ids and numbers, never text.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dunlin/pooling.h"
#include "dunlin/status.h"
#include "dunlin/types.h"
#include "kv/kv_policy.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"
#include "sampling/token_constraint.h"

namespace dunlin {

struct EngineRequest {
  std::vector<TokenId> prompt;  // at least one token
  SamplingParams sampling;
  std::vector<TokenId> eos_ids;  // the model's end-of-generation set; ignored under ignore_eos
  int priority = 0;              // lower runs first under SchedulePolicy::kPriority
  int tenant = 0;                // whose request it is, in [0, EngineConfig::num_tenants())
  std::chrono::milliseconds queue_timeout{0};  // longest wait to run for the first time; 0: none
  std::chrono::milliseconds deadline{0};       // submit to end; 0: none
  // Only requests of one salt share blocks of the prefix cache; "": the common one.
  std::string cache_salt;
  std::optional<KvPolicy> kv_policy;  // nullopt: EngineConfig::kv_policy; embeddings have the full
  // Tokens of the prompt that are one to kv_policy: those behind are read as an answer's would be.
  // 0: all of them.
  int num_policy_prompt_tokens = 0;
  // log p of the prompt tokens too (TokenOutput::prompt_logprobs), from token echo_start on. Tokens
  // before it may come from the prefix cache; where it is 0 or 1, the cache is bypassed.
  bool echo_logprobs = false;
  int echo_start = 0;  // in [0, number of prompt tokens)
  // May be empty. Told the logits [vocab_size] behind each of those log-probabilities, once and in
  // ascending position of the scored token. Engine thread; the others wait meanwhile.
  std::function<void(int position, std::span<const float> logits)> on_prompt_logits;
  // Other than kNone: no tokens, but the prompt's embedding (TokenOutput::embedding). Of
  // `sampling`, eos_ids, echo_logprobs and the constraint nothing counts then.
  Pooling pooling = Pooling::kNone;
  std::shared_ptr<TokenConstraint> constraint;  // null: none; the engine thread's from submit on
};

// Counts and times of one request; filled as it goes, whole in the last output.
struct RequestStats {
  int num_prompt_tokens = 0;
  int num_cached_tokens = 0;  // prompt tokens found in the prefix cache
  int num_output_tokens = 0;
  int num_chunks = 0;  // steps that computed some of the prompt
  int num_preemptions = 0;
  double queue_time_s = 0;        // submit -> first scheduled
  double first_token_time_s = 0;  // submit -> first token
  double total_time_s = 0;        // submit -> finish
};

// Which of its times a request was ended by.
enum class TimeLimit { kNone, kQueue, kDeadline };

// One step's result for one request.
struct TokenOutput {
  // Absent where only the finish is told. The token that ends a generation (end of generation or
  // a stop token id) may be told with its FinishReason::kStop; it is not part of the text.
  std::optional<TokenId> token;
  std::optional<TokenLogprobs> logprobs;
  // With EngineRequest::echo_logprobs, in the first output only: entry i is of prompt token i
  // given those before it, with sampling.num_logprobs alternatives. Entry 0 and those before
  // echo_start have no such number and are default-made.
  std::vector<TokenLogprobs> prompt_logprobs;
  // With EngineRequest::pooling, in the one output, which finishes with FinishReason::kStop:
  // [hidden_size], not normalised.
  std::vector<float> embedding;
  FinishReason finish = FinishReason::kNone;
  std::optional<Status> error;  // with FinishReason::kError
  // With kDeadline a request that has output finishes with FinishReason::kLength, any other with
  // kError.
  TimeLimit ended_by = TimeLimit::kNone;
  RequestStats stats;
};

}  // namespace dunlin
