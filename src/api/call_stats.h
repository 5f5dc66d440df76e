// What is told of a call when it ends: its choices' counts and times together.
#pragma once

#include <span>

#include "engine/request.h"

namespace dunlin {

// How far a choice has come.
struct ChoiceEnd {
  RequestStats stats;
  FinishReason finish = FinishReason::kNone;
};

struct CallStats {
  int num_choices = 0;
  int num_prompt_tokens = 0;  // of each prompt once
  int num_cached_tokens = 0;  // of them, found in the prefix cache
  int num_output_tokens = 0;
  int max_output_tokens = 0;  // of the longest choice
  int num_chunks = 0;         // in which the prompts were computed
  int num_preemptions = 0;
  double queue_time_s = 0;        // until the first choice was scheduled
  double first_token_time_s = 0;  // until the first token of any; 0: there is none yet
  // The least happy of the choices': kNone where one still runs, then kError, kCancelled, and the
  // first choice's own where all have ended well.
  FinishReason finish = FinishReason::kNone;
};

// All but the prompt tokens, of the choices in order, those of a prompt side by side.
CallStats sum_up(std::span<const ChoiceEnd> choices, int choices_per_prompt);

}  // namespace dunlin
