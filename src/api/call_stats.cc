#include "api/call_stats.h"

#include <algorithm>

namespace dunlin {
namespace {

int unhappiness(const ChoiceEnd& choice) {
  switch (choice.finish) {
    case FinishReason::kNone: return 3;
    case FinishReason::kError: return 2;
    case FinishReason::kCancelled: return 1;
    default: return 0;
  }
}

}  // namespace

CallStats sum_up(std::span<const ChoiceEnd> choices, int choices_per_prompt) {
  CallStats all;
  for (const ChoiceEnd& choice : choices) {
    const RequestStats& one = choice.stats;
    // The choices of a prompt share what the first of them has found.
    if (all.num_choices++ % choices_per_prompt == 0) all.num_cached_tokens += one.num_cached_tokens;
    all.num_output_tokens += one.num_output_tokens;
    all.max_output_tokens = std::max(all.max_output_tokens, one.num_output_tokens);
    all.num_chunks += one.num_chunks;
    all.num_preemptions += one.num_preemptions;
    if (one.first_token_time_s <= 0) continue;
    const bool is_first = all.first_token_time_s == 0;
    all.queue_time_s = is_first ? one.queue_time_s : std::min(all.queue_time_s, one.queue_time_s);
    all.first_token_time_s = is_first ? one.first_token_time_s
                                      : std::min(all.first_token_time_s, one.first_token_time_s);
  }
  if (choices.empty()) return all;
  all.finish =
      std::max_element(choices.begin(), choices.end(), [](const ChoiceEnd& a, const ChoiceEnd& b) {
        return unhappiness(a) < unhappiness(b);
      })->finish;
  return all;
}

}  // namespace dunlin
