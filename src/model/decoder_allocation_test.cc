// forward() allocates nothing once reserve() was called: counts operator new on every thread
// while it runs.

#include <gtest/gtest.h>

#include "model/loader.h"
#include "model/sequence_set.h"
#include "support/count_allocations.h"
#include "support/random_weights.h"

namespace dunlin {
namespace {

class CountingModel final : public Model {
 public:
  explicit CountingModel(Model& model) : model_(model) {}
  const ModelLimits& limits() const override { return model_.limits(); }
  const KvLayout& kv_layout() const override { return model_.kv_layout(); }
  void reserve(int max_tokens, int max_seqs, int max_outputs) override {
    model_.reserve(max_tokens, max_seqs, max_outputs);
  }
  void forward(const ForwardBatch& batch, KvStorage& kv, const ForwardOutputs& outputs) override {
    testing::counts_every_thread = true;
    model_.forward(batch, kv, outputs);
    testing::counts_every_thread = false;
  }

 private:
  Model& model_;
};

TEST(DecoderAllocation, prefill_mixed_and_decode_steps_allocate_nothing) {
  if (support::kIsSanitized) GTEST_SKIP() << "a sanitizer has its own operator new";
  for (const ModelConfig& config :
       {testing::tiny_qwen2(), testing::tiny_gemma3(), testing::tiny_deepseek(),
        testing::tiny_qwen2moe(), testing::tiny_gpt_oss()}) {
    testing::RandomWeightsOptions weights;
    weights.matrix_types = {DType::kQ8_0, DType::kF32};
    const testing::RandomWeights source(config, weights);
    LoadOptions options;
    options.num_threads = 2;
    const auto model = load_model(source, config, options);
    ASSERT_TRUE(model);
    CountingModel counting(**model);
    SequenceSet set(counting, 2, 400, 320, 2);
    const std::vector<TokenId> ids(320, 17);
    const std::int32_t first = 0;
    const SequenceSet::Part prefill[] = {{0, std::span(ids).first(310), {&first, 1}},
                                         {1, std::span(ids).first(10), {&first, 1}}};
    const SequenceSet::Part mixed[] = {{0, std::span(ids).first(1), {&first, 1}},
                                       {1, std::span(ids).first(60), {}}};
    const SequenceSet::Part decode[] = {{0, std::span(ids).first(1), {&first, 1}},
                                        {1, std::span(ids).first(1), {&first, 1}}};
    testing::num_allocations = 0;
    set.step(prefill);
    set.step(mixed);
    for (int i = 0; i < 20; ++i) set.step(decode);
    EXPECT_EQ(testing::num_allocations, 0) << config.architecture;
  }
}

}  // namespace
}  // namespace dunlin
