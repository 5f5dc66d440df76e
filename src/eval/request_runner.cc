#include "eval/request_runner.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

namespace dunlin::eval {
namespace {

Result<FinishedRequest> read_to_the_end(TokenStream& stream) {
  FinishedRequest finished;
  while (true) {
    std::optional<TokenOutput> output = stream.wait(std::chrono::seconds(10));
    if (!output) continue;
    if (output->error) return tl::unexpected(*output->error);
    if (!output->prompt_logprobs.empty())
      finished.prompt_logprobs = std::move(output->prompt_logprobs);
    if (output->token && output->finish != FinishReason::kStop)
      finished.tokens.push_back(*output->token);
    if (output->finish == FinishReason::kNone) continue;
    finished.stats = output->stats;
    if (output->finish != FinishReason::kCancelled) return finished;
    return fail(StatusCode::kUnavailable, "the engine gave the request up");
  }
}

}  // namespace

Outcome run_requests(Engine& engine, int count, FunctionRef<EngineRequest(int idx)> make,
                     FunctionRef<void(int idx, FinishedRequest finished)> done) {
  const std::size_t most =
      static_cast<std::size_t>(std::min(engine.config().max_queue, 2 * engine.config().max_seqs));
  std::deque<std::unique_ptr<TokenStream>> streams;
  int num_submitted = 0;
  for (int i = 0; i < count; ++i) {
    while (num_submitted < count && streams.size() < most) {
      DUNLIN_ASSIGN(stream, engine.submit(make(num_submitted)));
      streams.push_back(std::move(stream));
      ++num_submitted;
    }
    DUNLIN_ASSIGN(finished, read_to_the_end(*streams.front()));
    streams.pop_front();
    done(i, std::move(finished));
  }
  return {};
}

}  // namespace dunlin::eval
