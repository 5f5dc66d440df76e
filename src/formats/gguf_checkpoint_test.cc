#include "formats/gguf_checkpoint.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf_writer.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using testing::HasSubstr;

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class GgufCheckpointTest : public testing::Test {
 protected:
  Result<std::shared_ptr<const GgufCheckpoint>> open(int num_tokens) {
    GgufWriter writer;
    writer.set_string("general.architecture", "llama");
    writer.set_u32("llama.block_count", 3);
    writer.set_i32("llama.small", -2);
    writer.set_f32("llama.scale", 0.5f);
    writer.set_bool("llama.yes", true);
    const std::vector<std::int32_t> integers = {1, -2, 3};
    writer.set_i32s("llama.integers", integers);
    const std::vector<float> numbers = {0.5f, 2.0f};
    writer.set_f32s("llama.numbers", numbers);
    const std::vector<std::string> tokens(static_cast<std::size_t>(num_tokens), "x");
    writer.set_strings("tokenizer.ggml.tokens", tokens);
    const std::int64_t shape[] = {2, 3};
    writer.add_tensor("token_embd.weight", DType::kF32, shape, bytes_of({0, 1, 2, 3, 4, 5}));
    const std::string path = folder_.path() + "/" + std::to_string(num_tokens) + ".gguf";
    EXPECT_TRUE(writer.write(path));
    auto file = GgufFile::open(path);
    if (!file) return tl::unexpected<Status>(file.error());
    return GgufCheckpoint::create(*file);
  }

  ScratchFolder folder_;
};

TEST_F(GgufCheckpointTest, GivesValuesByTheirKind) {
  const auto checkpoint = open(2);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const auto value = [&](std::string_view key) { return *(*checkpoint)->metadata(key); };
  EXPECT_EQ(value("general.architecture"), MetadataValue(std::string("llama")));
  EXPECT_EQ(value("llama.block_count"), MetadataValue(std::int64_t{3}));
  EXPECT_EQ(value("llama.small"), MetadataValue(std::int64_t{-2}));
  EXPECT_EQ(value("llama.scale"), MetadataValue(0.5));
  EXPECT_EQ(value("llama.yes"), MetadataValue(true));
  EXPECT_EQ(value("llama.integers"), MetadataValue(std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(value("llama.numbers"), MetadataValue(std::vector<double>{0.5, 2.0}));
  EXPECT_FALSE((*checkpoint)->metadata("llama.none"));
}

TEST_F(GgufCheckpointTest, AReleasedTensorCanBeReadAgain) {
  const auto checkpoint = open(2);
  ASSERT_TRUE(checkpoint);
  ASSERT_EQ((*checkpoint)->tensors().size(), 1u);
  const TensorView view = *(*checkpoint)->find("token_embd.weight");
  (*checkpoint)->release(view);
  float value;
  std::memcpy(&value, view.data + 5 * sizeof(float), sizeof(value));
  EXPECT_EQ(value, 5.0f);
  EXPECT_FALSE((*checkpoint)->find("output.weight"));
}

TEST_F(GgufCheckpointTest, RefusesAVocabularyThatDoesNotFitTheEmbedding) {
  EXPECT_THAT(open(3).error().message(),
              HasSubstr("tokenizer.ggml.tokens has 3 tokens, but token_embd.weight has 2 rows"));
}

}  // namespace
}  // namespace dunlin
