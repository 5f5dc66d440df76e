// Perplexity of a text: exp of the mean of -log p(token | those before it). Lower is better.
//
// The text's tokens are cut into chunks of `context` tokens in a row; what doesn't fill one is left
// out. A chunk is computed alone. Where the model's prompts begin with BOS, BOS replaces a chunk's
// first token (the text as a whole begins with one). Only tokens that have at least half a chunk
// before them are scored, from number context / 2 + 1 on: llama-perplexity's definition, so that
// figures compare.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "eval/estimate.h"
#include "eval/request_runner.h"
#include "text/tokenizer.h"

namespace dunlin::eval {

struct Chunks {
  int context = 0;       // tokens of each, at least 4
  int first_scored = 0;  // token of a chunk from which on they are scored
  std::vector<std::vector<TokenId>> ids;

  int num_scored() const { return context - first_scored; }  // of a chunk
};

// At most max_chunks of them; 0: all. A newline at the end of the text doesn't count.
// kInvalidArgument where there is none, with the numbers.
Result<Chunks> cut_into_chunks(const Tokenizer& tokenizer, std::string_view text, int context,
                               int max_chunks);

// Request for one of them. What is scored is to the engine's policy (kv/kv_policy.h) an answer to
// what stands before it: so policies that differ only there show too.
EngineRequest scoring_request(const Chunks& chunks, int idx);

// What an engine is to be like for it: contexts of one chunk, and steps that score many tokens.
void configure_scoring(EngineConfig& engine, int context);

struct Perplexity {
  int num_chunks = 0;
  std::int64_t num_scored = 0;
  Estimate nll;  // mean of -log p, in nats; exp_of(nll) is the perplexity
};

// The engine must hold chunks.context tokens.
Result<Perplexity> measure_perplexity(Engine& engine, const Chunks& chunks,
                                      const Progress& progress);

// One long text, each token given all before it: how the model fares as the text grows. All of it
// is a prompt to the engine's policy.
struct Stretch {
  int begin = 0, end = 0;  // its tokens
  Estimate nll;            // mean of -log p
};

// The first num_tokens of the text, 2 or more, in stretches of `stretch` tokens (the last may be
// shorter; the first token of all has no number). kInvalidArgument where the text is shorter, with
// the numbers, and where the engine's policy (kv/kv_policy.h) does not take so many.
Result<std::vector<Stretch>> measure_stretches(Engine& engine, const Tokenizer& tokenizer,
                                               std::string_view text, int num_tokens, int stretch,
                                               const Progress& progress);

}  // namespace dunlin::eval
