// How fast an engine goes on with a text, as its only client sees it.
#pragma once

#include <span>

#include "dunlin/status.h"
#include "engine/engine.h"
#include "eval/request_runner.h"

namespace dunlin::eval {

struct DecodeOptions {
  int num_tokens = 32;  // generated behind the prompt, the first not counted: the prompt gives it
  int num_repetitions =
      3;  // all but the first find the prompt in the prefix cache, if there is one
};

// Tokens a second behind `prompt`, the median of the repetitions. The engine's context must hold
// the prompt, num_tokens and one more.
Result<double> measure_decode_speed(Engine& engine, std::span<const TokenId> prompt,
                                    const DecodeOptions& options, const Progress& progress);

}  // namespace dunlin::eval
