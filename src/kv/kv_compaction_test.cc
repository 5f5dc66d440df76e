#include "kv/kv_compaction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "kv/kv_storage.h"
#include "kv/kv_votes.h"

namespace dunlin {
namespace {

std::vector<std::int32_t> chosen(const KvCompaction& compaction, const std::vector<float>& votes) {
  KvCompactionScratch scratch;
  const auto slots = choose_slots(compaction, votes, scratch);
  return {slots.begin(), slots.end()};
}

TEST(ChooseSlots, TakesTheMostVotedAndOfEqualOnesTheEarlier) {
  const std::vector<float> votes = {0, 3, 1, 1, 5, 1, 9, 9};
  EXPECT_EQ(chosen({6, 2}, votes), (std::vector<std::int32_t>{1, 4}));
  EXPECT_EQ(chosen({6, 3}, votes), (std::vector<std::int32_t>{1, 2, 4}));
  EXPECT_EQ(chosen({8, 1}, votes), (std::vector<std::int32_t>{6}));
  EXPECT_EQ(chosen({8, 8}, votes).size(), 8u);
}

TEST(ChooseSlots, WhatIsNoNumberHasNoVotes) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(chosen({4, 2}, {nan, 0, nan, 1}), (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(chosen({3, 2}, {nan, nan, nan}), (std::vector<std::int32_t>{0, 1}));
}

TEST(ChooseSlots, NeighboursOfAVotedOneCountAsIt) {
  const std::vector<float> votes = {0, 0, 0, 8, 0, 0, 0, 2, 100};
  EXPECT_EQ(chosen({8, 3, 3}, votes), (std::vector<std::int32_t>{2, 3, 4}));
  EXPECT_EQ(chosen({8, 5, 5}, votes), (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(chosen({8, 5, 3}, votes), (std::vector<std::int32_t>{2, 3, 4, 6, 7}))
      << "nothing behind counts";
}

struct Shape {
  KvFormats formats;
  int heads, dim_k, dim_v;
  bool values_in_keys = false;
};

// Two layers in blocks of random bytes; what is said of the second one.
class CompactedLayer {
 public:
  static constexpr int kBlocks = 8;

  explicit CompactedLayer(const Shape& shape) : storage_(layout_of(shape), kBlocks) {
    std::mt19937 random(5);
    for (int b = 0; b < kBlocks; ++b)
      for (std::int64_t i = 0; i < storage_.block_bytes(); ++i)
        storage_.block(b)[i] = static_cast<std::byte>(random());
    layer_ = storage_.layer(1);
  }
  static KvLayout layout_of(const Shape& shape) {
    KvLayout layout = KvLayout::make({0, 0}, shape.heads, shape.dim_k, shape.dim_v, shape.formats);
    layout.values_in_keys = shape.values_in_keys;
    return layout;
  }

  // All bits of a token's key and value in a head, by the layouts that kv_format.h tells.
  std::vector<unsigned> token(int head, std::int64_t slot) {
    std::vector<unsigned> bits;
    const std::byte* block = storage_.block(static_cast<std::int32_t>(slot / kBlockSize));
    const auto t = static_cast<int>(slot % kBlockSize);
    read_part(layer_.k, block + layer_.k_offset, head, t, true, bits);
    if (!layer_.values_in_keys) read_part(layer_.v, block + layer_.v_offset, head, t, false, bits);
    return bits;
  }
  const PagedKvLayer& layer() const { return layer_; }
  std::vector<std::byte> bytes() {
    const auto num = static_cast<std::size_t>(kBlocks * storage_.block_bytes());
    return {storage_.block(0), storage_.block(0) + num};
  }

 private:
  static void read_part(const KvPart& part, const std::byte* first, int head, int t, bool is_keys,
                        std::vector<unsigned>& bits) {
    const std::byte* codes = first + head * part.head_bytes;
    const int size = std::max(1, kv_format_info(part.format).bits / 8);
    for (int c = 0; c < part.channels; ++c) {
      std::int64_t at = is_keys ? c * kBlockSize + t : t * part.channels + c;
      int shift = 0, mask = 255;
      if (part.format == KvFormat::kInt8)
        at = is_keys ? (c / 4 * kBlockSize + t) * 4 + c % 4
                     : (t / 4 * part.channels + c) * 4 + t % 4;
      if (part.format == KvFormat::kInt4) {
        at = is_keys ? (c / 8 * kBlockSize + t) * 4 + c % 4
                     : ((t / 4 * part.channels / 16 + c / 16) * 8 + c % 8) * 4 + t % 4;
        shift = (is_keys ? c / 4 : c / 8) % 2 * 4;
        mask = 15;
      }
      for (int i = 0; i < size; ++i)
        bits.push_back(static_cast<unsigned>(codes[at * size + i]) >> shift & mask);
    }
    for (int g = 0; g < part.num_groups; ++g)
      for (int i = 0; i < 2; ++i)
        bits.push_back(static_cast<unsigned>(
            first[part.scales_at + ((head * part.num_groups + g) * kBlockSize + t) * 2 + i]));
  }

  KvStorage storage_;
  PagedKvLayer layer_;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (int i = 0; i < kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    all.push_back({format, 2, 64, 64});
    all.push_back({format, 3, 40, 24});
    all.push_back({{format, KvFormat::kF16}, 1, 20, 12});
    all.push_back({format, 1, 96, 64, true});
  }
  return all;
}

TEST(CompactHead, MovesWhatStaysAndNothingElse) {
  const std::vector<std::int32_t> blocks = {6, 2, 7, 0};
  const auto slot = [&](int i) {
    return std::int64_t{blocks[static_cast<std::size_t>(i / kBlockSize)]} * kBlockSize +
           i % kBlockSize;
  };
  std::mt19937 random(9);
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << kv_format_info(shape.formats.k).name << " " << shape.dim_k);
    CompactedLayer layer(shape);
    const int head = shape.heads - 1;
    const KvCompaction compaction{48, 32};
    std::vector<float> votes(64);
    for (float& vote : votes) vote = static_cast<float>(random() % 1000);
    const std::vector<float> before = votes;
    std::vector<std::vector<unsigned>> tokens, others;
    for (int i = 0; i < 64; ++i) tokens.push_back(layer.token(head, slot(i)));
    if (shape.heads > 1)
      for (int i = 0; i < 64; ++i) others.push_back(layer.token(0, slot(i)));
    KvCompactionScratch scratch;
    compact_head(layer.layer(), head, blocks.data(), compaction, votes, scratch);

    // Each of the first 32 slots holds its token or one from behind, with its votes, once.
    const std::vector<std::int32_t> stays = chosen(compaction, before);
    std::vector<std::int32_t> held;
    for (int i = 0; i < 32; ++i) {
      const auto token = layer.token(head, slot(i));
      const auto found = std::find_if(stays.begin(), stays.end(), [&](std::int32_t from) {
        return tokens[static_cast<std::size_t>(from)] == token;
      });
      ASSERT_NE(found, stays.end()) << "slot " << i;
      EXPECT_TRUE(*found == i || (*found >= 32 && !std::ranges::binary_search(stays, i)));
      EXPECT_EQ(votes[static_cast<std::size_t>(i)], before[static_cast<std::size_t>(*found)]);
      held.push_back(*found);
    }
    std::sort(held.begin(), held.end());
    EXPECT_EQ(held, stays);
    for (int i = 32; i < 64; ++i) {
      EXPECT_EQ(layer.token(head, slot(i)), tokens[static_cast<std::size_t>(i)]) << "only moved";
      EXPECT_EQ(votes[static_cast<std::size_t>(i)],
                i < 48 ? before[static_cast<std::size_t>(i + 16)] : 0);
    }
    for (std::size_t i = 0; i < others.size(); ++i)
      ASSERT_EQ(layer.token(0, slot(static_cast<int>(i))), others[i]) << "another head's";
  }
}

TEST(CompactHead, WritesOnlyTheSlotsThatItMovesInto) {
  for (const Shape& shape : shapes()) {
    CompactedLayer layer(shape);
    const auto before = layer.bytes();
    const std::int32_t blocks[] = {6, 2, 7};
    std::vector<float> votes(48);
    std::iota(votes.begin(), votes.end(), 0.0f);
    std::swap(votes[3], votes[40]);
    KvCompactionScratch scratch;
    compact_head(layer.layer(), 0, blocks, {48, 16}, votes, scratch);
    const auto after = layer.bytes();
    const auto block_bytes = static_cast<std::size_t>(layer.layer().block_stride);
    for (std::size_t i = 0; i < before.size(); ++i)
      ASSERT_TRUE(before[i] == after[i] || i / block_bytes == 6) << i;
    EXPECT_NE(before, after);
    votes.assign(48, 0);
    compact_head(layer.layer(), 0, blocks, {48, 16}, votes, scratch);
    EXPECT_EQ(layer.bytes(), after) << "those that come first stay where they are";
  }
}

TEST(KvVotes, AreApartForEachLayerAndHead) {
  KvVotes votes;
  EXPECT_TRUE(votes.is_empty());
  votes.reset(3, 2, 40);
  EXPECT_EQ(votes.stride(), 48);
  for (int layer = 0; layer < 3; ++layer)
    for (int head = 0; head < 2; ++head) {
      const auto row = votes.of_head(layer, head);
      ASSERT_EQ(row.size(), 48u);
      for (const float vote : row) ASSERT_EQ(vote, 0);
      std::fill(row.begin(), row.end(), 1.0f);
    }
  EXPECT_EQ(votes.of_layer(1), votes.of_head(0, 0).data() + 96);
  votes.clear();
  EXPECT_TRUE(votes.is_empty());
}

}  // namespace
}  // namespace dunlin
