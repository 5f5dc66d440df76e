// What a mixture of experts reads. That it computes the right thing is for tiny_golden_test.cc and
// decoder_test.cc.
#include <numeric>
#include <string>

#include <gmock/gmock.h>

#include "model/hf_checkpoint.h"
#include "model/loader.h"
#include "model/sequence_set.h"
#include "model/weights.h"
#include "support/random_weights.h"

namespace dunlin {
namespace {

constexpr int kLength = 64;

// The bytes of weights that a step over the first tokens reads, all of them with logits.
std::uint64_t bytes_of_step(Model& model, int num_tokens) {
  std::vector<TokenId> ids(static_cast<std::size_t>(num_tokens));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * i * 7 % 331);
  std::vector<std::int32_t> all(ids.size());
  std::iota(all.begin(), all.end(), 0);
  SequenceSet set(model, 1, kLength, kLength, kLength);
  const SequenceSet::Part part{0, ids, all};
  const std::uint64_t before = model.counters().weight_bytes_read;
  set.step({&part, 1});
  return model.counters().weight_bytes_read - before;
}

// Packed as F32, where a panel has 16 rows, and summed over the slots that `counts` takes.
template <typename F>
std::uint64_t matrix_bytes(const ModelConfig& config, F counts) {
  Weights unused;
  std::uint64_t sum = 0;
  for (const TensorSlot& slot : tensor_slots(config, unused)) {
    if (slot.matrix == nullptr || !counts(slot.name)) continue;
    sum += static_cast<std::uint64_t>((slot.rows + 15) / 16 * 16 * slot.cols * 4);
  }
  return sum;
}

// "blk.1.ffn_gate.3.weight"
bool is_expert(const std::string& name) {
  for (const std::string_view kind : {".ffn_gate.", ".ffn_up.", ".ffn_down."}) {
    const std::size_t at = name.find(kind);
    if (at != name.npos && name[at + kind.size()] <= '9') return true;
  }
  return false;
}

TEST(MixtureOfExperts, ReadsTheChosenExpertsOfATokenAndEachOnceForMany) {
  for (const ModelConfig& config : {testing::tiny_qwen2moe(), testing::tiny_gpt_oss()}) {
    const testing::RandomWeights source(config, {.seed = 5});
    LoadOptions options;
    options.isa = Isa::kReferenceQ8;
    const auto model = load_model(source, config, options);
    ASSERT_TRUE(model) << model.error().message();
    const bool reads_embedding = config.tied_head;
    const std::uint64_t experts = matrix_bytes(config, is_expert);
    const std::uint64_t rest = matrix_bytes(config, [&](const std::string& name) {
      return !is_expert(name) && (reads_embedding || name != "token_embd.weight");
    });
    const auto k = static_cast<std::uint64_t>(config.moe.experts_per_token);
    const auto all = static_cast<std::uint64_t>(config.moe.num_experts);
    EXPECT_EQ(bytes_of_step(**model, 1), rest + experts * k / all) << config.architecture;
    EXPECT_EQ(bytes_of_step(**model, kLength), rest + experts) << config.architecture;
  }
}

TEST(MixtureOfExperts, AStackedTensorOfAnotherSizeIsNamed) {
  const ModelConfig config = testing::tiny_gpt_oss();
  testing::RandomWeights source(config, {});
  for (int e = 0; e < config.moe.num_experts; ++e)
    source.erase("blk.1.ffn_up." + std::to_string(e) + ".weight");
  EXPECT_THAT(check_tensors(config, source).error().message(),
              ::testing::HasSubstr("blk.1.ffn_up.0.weight is missing"));
  source.add("blk.1.ffn_up_exps.weight", {DType::kF32, 3, {5, 150, 96, 1}, nullptr});
  EXPECT_THAT(check_tensors(config, source).error().message(),
              ::testing::HasSubstr("blk.1.ffn_up_exps.weight is [5, 150, 96], but the model's "
                                   "numbers make it [800, 96]"));
}

// llama.cpp does not take the dense size for an expert's where gpt-oss files leave it out.
TEST(MixtureOfExperts, TheSizeOfAnExpertIsAmongTheKeysOfEveryFolder) {
  for (const std::string name : {"gpt-oss", "qwen2-moe", "qwen3-moe", "deepseek-v3"}) {
    const auto checkpoint = HfCheckpoint::open(DUNLIN_TEST_DATA_DIR "/tiny/" + name);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    const auto architecture = (*checkpoint)->metadata("general.architecture");
    const std::string key = std::get<std::string>(*architecture) + ".expert_feed_forward_length";
    EXPECT_TRUE((*checkpoint)->metadata(key)) << key;
  }
}

}  // namespace
}  // namespace dunlin
