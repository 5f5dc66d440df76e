#include "formats/gguf_weight_source.h"

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

class GgufWeightSourceTest : public testing::Test {
 protected:
  // Two heads of four, one KV head; each row holds its own number.
  Result<std::unique_ptr<GgufWeightSource>> open(std::string_view architecture,
                                                 std::uint32_t num_heads) {
    GgufWriter writer;
    const std::string prefix(architecture);
    writer.set_string("general.architecture", architecture);
    writer.set_u32(prefix + ".embedding_length", 8);
    writer.set_u32(prefix + ".attention.head_count", num_heads);
    std::vector<float> q, k;
    for (int r = 0; r < 8; ++r) q.insert(q.end(), 8, static_cast<float>(r));
    for (int r = 0; r < 4; ++r) k.insert(k.end(), 8, static_cast<float>(r));
    const std::int64_t q_shape[] = {8, 8}, k_shape[] = {4, 8}, bias_shape[] = {4};
    writer.add_tensor("blk.0.attn_q.weight", DType::kF32, q_shape, bytes_of(q));
    writer.add_tensor("blk.0.attn_k.weight", DType::kF32, k_shape, bytes_of(k));
    writer.add_tensor("blk.0.attn_k.bias", DType::kF32, bias_shape, bytes_of({0, 1, 2, 3}));
    writer.add_tensor("blk.0.attn_v.weight", DType::kF32, k_shape, bytes_of(k));
    const std::string path = folder_ + "/" + std::to_string(num_files_++) + ".gguf";
    EXPECT_TRUE(writer.write(path));
    auto file = GgufFile::open(path);
    if (!file) return tl::unexpected<Status>(file.error());
    return GgufWeightSource::create(*file);
  }

  ScratchFolder scratch_;
  const std::string& folder_ = scratch_.path();
  int num_files_ = 0;
};

std::vector<int> canonical_rows(const SourceTensor& tensor) {
  std::vector<int> rows;
  for (std::int64_t r = 0; r < tensor.view.shape[0]; ++r) {
    rows.push_back(static_cast<int>(tensor.row_order.stored_row(r)));
  }
  return rows;
}

TEST_F(GgufWeightSourceTest, PutsTheInterleavedRowsOfLlamaInOrder) {
  auto source = open("llama", 2);
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(canonical_rows(*(*source)->find("blk.0.attn_q.weight")),
            (std::vector<int>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(canonical_rows(*(*source)->find("blk.0.attn_k.weight")),
            (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(canonical_rows(*(*source)->find("blk.0.attn_k.bias")), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(canonical_rows(*(*source)->find("blk.0.attn_v.weight")),
            (std::vector<int>{0, 1, 2, 3}));
  EXPECT_FALSE((*source)->find("blk.0.attn_z.weight"));
}

TEST_F(GgufWeightSourceTest, LeavesOtherArchitecturesAsTheyAre) {
  auto source = open("qwen2", 2);
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(canonical_rows(*(*source)->find("blk.0.attn_q.weight")),
            (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(GgufWeightSourceTest, RefusesHeadsThatCannotBe) {
  EXPECT_THAT(open("llama", 0).error().message(), HasSubstr("llama.attention.head_count 0"));
  EXPECT_THAT(open("llama", 3).error().message(), HasSubstr("head_count 3"));
  EXPECT_THAT(open("llama", 8).error().message(), HasSubstr("1 dimensions"));
}

TEST_F(GgufWeightSourceTest, NeverReordersRowsThatAreNoWholeHeads) {
  auto source = open("llama", 1);  // heads of eight, and four rows of K
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(canonical_rows(*(*source)->find("blk.0.attn_k.weight")),
            (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(GgufWeightSourceTest, AReleasedTensorCanBeReadAgain) {
  auto source = open("llama", 2);
  ASSERT_TRUE(source);
  const SourceTensor tensor = *(*source)->find("blk.0.attn_q.weight");
  (*source)->release(tensor);
  float value;
  std::memcpy(&value, tensor.view.data + 7 * 8 * sizeof(float), sizeof(value));
  EXPECT_EQ(value, 7.0f);
}

}  // namespace
}  // namespace dunlin
