// Many requests through an engine, so many under way at a time that a step never lacks work and
// memory stays bounded.
#pragma once

#include <functional>
#include <vector>

#include "base/function_ref.h"
#include "dunlin/status.h"
#include "engine/engine.h"

namespace dunlin::eval {

// Told how much is done of `total`; may be empty.
using Progress = std::function<void(int done, int total)>;

struct FinishedRequest {
  std::vector<TokenId> tokens;  // without the one that ended the answer
  std::vector<TokenLogprobs> prompt_logprobs;
  RequestStats stats;
};

// make(i) gives request i of `count`, in order; done(i, ...) is told its end, in order, both by the
// caller's thread. The first error of a request ends all.
Outcome run_requests(Engine& engine, int count, FunctionRef<EngineRequest(int idx)> make,
                     FunctionRef<void(int idx, FinishedRequest finished)> done);

}  // namespace dunlin::eval
