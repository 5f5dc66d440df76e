// Makes a Generation of n engine requests over one prompt.
#pragma once

#include <memory>
#include <vector>

#include "dunlin/status.h"
#include "engine/engine.h"
#include "frontend/session.h"
#include "frontend/types.h"
#include "text/tokenizer.h"

namespace dunlin {

// Submits options.n choices over one prompt; all or none. `options.sampling.max_tokens`
// must be set. Errors are the engine's. `engine` and `tokenizer` must outlive the Generation.
Result<std::unique_ptr<Generation>> start_generation(Engine& engine, const Tokenizer& tokenizer,
                                                     std::vector<TokenId> prompt,
                                                     const GenerationOptions& options);

}  // namespace dunlin
