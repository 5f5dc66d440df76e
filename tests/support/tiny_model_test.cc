#include "support/tiny_model.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "formats/gguf_checkpoint.h"
#include "model/loader.h"
#include "model/registry.h"
#include "model/single_sequence.h"
#include "model/weights.h"

namespace dunlin {
namespace {

std::vector<TokenId> greedy(const TinyModelOptions& options, int num_tokens) {
  const TinyModelFile file(options);
  auto gguf = GgufFile::open(file.path());
  EXPECT_TRUE(gguf) << gguf.error().message();
  auto source = GgufCheckpoint::create(*gguf);
  EXPECT_TRUE(source) << source.error().message();
  auto config = read_config(**source);
  EXPECT_TRUE(config) << config.error().message();
  const Outcome complete = check_checkpoint(*config, **source);
  EXPECT_TRUE(complete) << complete.error().message();
  LoadOptions load;
  load.isa = Isa::kReference;
  load.num_threads = 1;
  auto model = load_model(**source, *config, load);
  EXPECT_TRUE(model) << model.error().message();
  SingleSequence sequence(**model, 128);
  std::vector<TokenId> ids = {'H', 'e', 'l', 'l', 'o'};
  std::span<const float> logits = sequence.append(ids);
  std::vector<TokenId> out;
  while (static_cast<int>(out.size()) < num_tokens) {
    out.push_back(
        static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    logits = sequence.append(std::span(&out.back(), 1));
  }
  return out;
}

class TinyModelArchitectures : public testing::TestWithParam<const char*> {};

TEST_P(TinyModelArchitectures, WritesAVariedTextWithoutEnd) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    TinyModelOptions options;
    options.architecture = GetParam();
    options.tied = seed % 2 == 0;
    options.seed = seed;
    const std::vector<TokenId> ids = greedy(options, 48);
    EXPECT_GE(std::set<TokenId>(ids.begin(), ids.end()).size(), 10u) << testing::PrintToString(ids);
    EXPECT_LT(*std::max_element(ids.begin(), ids.end()), kTinyEndOfText);
  }
}

INSTANTIATE_TEST_SUITE_P(, TinyModelArchitectures, testing::Values("llama", "qwen2", "gemma3"));

class TinyModelTypes : public testing::TestWithParam<DType> {};

TEST_P(TinyModelTypes, RunsWithMatricesOfTheType) {
  TinyModelOptions options;
  options.dtype = GetParam();
  options.hidden_size = options.ffn_size = 256;
  options.head_dim = 64;
  const std::vector<TokenId> ids = greedy(options, 24);
  EXPECT_GE(std::set<TokenId>(ids.begin(), ids.end()).size(), 8u) << testing::PrintToString(ids);
}

INSTANTIATE_TEST_SUITE_P(, TinyModelTypes,
                         testing::Values(DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
                                         DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K,
                                         DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                         DType::kIQ4_NL, DType::kIQ4_XS),
                         [](const auto& test) { return std::string(dtype_info(test.param).name); });

TEST(TinyModel, IsTheSameFileForTheSameOptions) {
  const auto bytes = tiny_model_writer().build();
  EXPECT_EQ(bytes, tiny_model_writer().build());
  TinyModelOptions other;
  other.seed = 2;
  EXPECT_NE(bytes, tiny_model_writer(other).build());
}

TEST(TinyModel, NamesEveryByteOnce) {
  const std::vector<std::string> tokens = tiny_vocabulary(kTinyUsedTokens);
  ASSERT_EQ(tokens.size(), static_cast<std::size_t>(kTinyUsedTokens));
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), tokens.size());
  EXPECT_EQ(tokens['A'], "A");
  EXPECT_EQ(tokens[' '], "\xC4\xA0");   // U+0120
  EXPECT_EQ(tokens['\n'], "\xC4\x8A");  // U+010A
  EXPECT_EQ(tokens[0xAD], "\xC5\x83");  // U+0143, the last of them
  EXPECT_EQ(tokens[kTinyImStart], "<|im_start|>");
  EXPECT_EQ(tokens[kTinyImEnd], "<|im_end|>");
}

}  // namespace
}  // namespace dunlin
