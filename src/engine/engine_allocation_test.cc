// A steady decode step allocates nothing: counts operator new on the engine's thread only.
#include <atomic>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/count_allocations.h"
#include "support/engine_harness.h"

namespace dunlin {
namespace {

TEST(EngineAllocation, ASteadyDecodeStepAllocatesNothing) {
  if (support::kIsSanitized) GTEST_SKIP() << "a sanitizer has its own operator new";
  auto model = std::make_unique<testing::FakeModel>(std::vector<int>{0, 40});
  model->check_slots = false;
  std::atomic<int> num_counted_steps{0};
  int num_decode_steps = 0;
  int num_outputs = 0;
  std::atomic<int> num_read{0};
  model->before_forward = [&](const ForwardBatch& batch) {
    // A reader that lags makes its queue grow, so wait for the readers.
    while (num_read < num_outputs) {
    }
    num_outputs += batch.num_outputs();
    const bool is_decode = batch.num_tokens() == 4 && batch.num_seqs() == 4;
    num_decode_steps = is_decode ? num_decode_steps + 1 : 0;
    // From the start of a forward to that of the next: commit, output, schedule, build.
    testing::counts_this_thread = num_decode_steps > 8 && num_decode_steps < 150;
    num_counted_steps += testing::counts_this_thread;
  };
  EngineConfig config;
  config.max_context = 512;
  config.kv_bytes = 4 << 20;
  auto engine = Engine::create(std::move(model), config).value();
  std::vector<std::unique_ptr<TokenStream>> streams;
  for (unsigned i = 0; i < 4; ++i) {
    EngineRequest request = testing::make_request(testing::random_prompt(i, 20), 300);
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    request.sampling.top_p = 0.9f;
    request.sampling.top_k = i == 3 ? 20 : 0;
    request.sampling.presence_penalty = i == 1 ? 0.5f : 0.0f;
    streams.push_back(engine->submit(std::move(request)).value());
  }
  for (bool done = false; !done;) {
    done = true;
    for (auto& stream : streams) {
      if (!stream) continue;
      while (auto output = stream->poll()) {
        ++num_read;
        if (output->finish == FinishReason::kNone) continue;
        stream.reset();
        break;
      }
      done = done && !stream;
    }
  }
  engine.reset();
  EXPECT_GT(num_counted_steps, 100);
  EXPECT_EQ(testing::num_allocations, 0);
}

}  // namespace
}  // namespace dunlin
