#include "kernels/shared_prefixes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/attention_fixture_for_tests.h"
#include "kernels/float_tables_for_tests.h"

namespace dunlin {
namespace {

using testing::ElementsAre;

// Sequences by their blocks; each has one query, its last token.
struct Batch {
  explicit Batch(std::vector<std::vector<std::int32_t>> blocks) {
    for (const auto& of_seq : blocks) longest = std::max(longest, of_seq.size());
    for (auto& of_seq : blocks) {
      const auto len = static_cast<std::int32_t>(of_seq.size()) * kKvBlockSize;
      positions.push_back(len - 1);
      starts.push_back(static_cast<std::int32_t>(positions.size()));
      lens.push_back(len);
      of_seq.resize(longest, -1);
      tables.insert(tables.end(), of_seq.begin(), of_seq.end());
    }
  }
  AttentionBatch get() const {
    AttentionBatch batch;
    batch.positions = positions;
    batch.query_start_loc = starts;
    batch.seq_lens = lens;
    batch.block_tables = tables;
    batch.max_blocks_per_seq = static_cast<std::int64_t>(longest);
    return batch;
  }
  SharedPrefixes find(std::int64_t max_members = 100, int window = 0) const {
    AttentionParams params;
    PagedKvLayer layer{};
    layer.window = window;
    SharedPrefixes shared;
    shared.find(params, get(), layer, max_members);
    return shared;
  }

  std::size_t longest = 0;
  std::vector<std::int32_t> positions, starts = {0}, lens, tables;
};

// `shared` blocks from `first` on and `own` ones.
std::vector<std::int32_t> blocks(int first, int shared, int own) {
  static std::int32_t next = 10'000;
  std::vector<std::int32_t> ids;
  for (int i = 0; i < shared; ++i) ids.push_back(first + i);
  for (int i = 0; i < own; ++i) ids.push_back(next++);
  return ids;
}

TEST(SharedPrefixes, AreWholeSplitsThatAllMembersShare) {
  const Batch batch({blocks(0, 40, 3), blocks(500, 20, 1), blocks(0, 33, 9), blocks(0, 15, 30),
                     blocks(500, 20, 2), blocks(700, 50, 1), blocks(0, 40, 1)});
  const SharedPrefixes shared = batch.find();
  ASSERT_EQ(shared.groups().size(), 2u);
  EXPECT_EQ(shared.groups()[0].num_members, 3);  // 15 blocks are less than a split
  EXPECT_EQ(shared.groups()[0].end, 512);
  EXPECT_EQ(shared.groups()[1].num_members, 2);
  EXPECT_EQ(shared.groups()[1].end, 256);
  std::vector<int> seqs, ends;
  for (int m = 0; m < shared.num_members(); ++m) seqs.push_back(shared.seq_of(m));
  for (int s = 0; s < 7; ++s) ends.push_back(shared.end_of(s));
  EXPECT_THAT(seqs, ElementsAre(0, 2, 6, 1, 4));
  EXPECT_THAT(ends, ElementsAre(512, 256, 512, 0, 256, 0, 512));
  EXPECT_EQ(shared.member_of(4), 4);
  EXPECT_EQ(shared.member_of(5), -1);
}

TEST(SharedPrefixes, EndWhereAQueryEnds) {
  const Batch batch({blocks(0, 16, 0), blocks(0, 64, 0), blocks(0, 15, 0)});
  const SharedPrefixes shared = batch.find();
  ASSERT_EQ(shared.groups().size(), 1u);
  EXPECT_EQ(shared.groups()[0].num_members, 2);
  EXPECT_EQ(shared.groups()[0].end, 256);
}

TEST(SharedPrefixes, HaveNoMoreMembersThanAllowedAndNoneBehindAWindow) {
  const std::vector<std::vector<std::int32_t>> four(4, blocks(0, 32, 0));
  EXPECT_EQ(Batch(four).find(3).num_members(), 3);
  EXPECT_EQ(Batch(four).find(1).num_members(), 0);
  EXPECT_TRUE(Batch(four).find(0).groups().empty());
  EXPECT_TRUE(Batch(four).find(100, 64).groups().empty());
}

class SharedAttention : public testing::TestWithParam<NamedTable> {};
INSTANTIATE_TEST_SUITE_P(Isa, SharedAttention, testing::ValuesIn(fast_tables()),
                         [](const auto& param) { return param.param.name; });

// Each sequence alone shares nothing; together they must give the same bits.
TEST_P(SharedAttention, GivesTheBitsOfEachSequenceAlone) {
  const std::vector<int> lens = {1500, 1100, 700, 1300, 530, 1250, 90, 1490};
  const std::vector<int> shared_blocks = {64, 64, 40, 64, 17, 64, 5, 64};
  const AttentionShape shapes[] = {
      {9, 3, 64, 64}, {14, 2, 64, 64}, {6, 6, 80, 80}, {8, 1, 20, 12}, {50, 1, 16, 8}};
  for (AttentionShape shape : shapes) {
    for (const KvFormat format : all_kv_formats()) {
      shape.formats = format;
      AttentionFixture fixture(shape, lens);
      std::vector<QuerySpan> spans = {{6, 80, 3}};  // a chunk of a prompt among them
      for (int seq = 0; seq < 8; ++seq) {
        for (int b = 0; b < shared_blocks[static_cast<std::size_t>(seq)]; ++b)
          fixture.entry(seq, b) = fixture.entry(0, b);
        spans.push_back({seq, lens[static_cast<std::size_t>(seq)] - 1, 1});
      }
      std::vector<float> sinks(static_cast<std::size_t>(shape.heads), 0.5f);
      AttentionParams params = fixture.params();
      params.sinks = format == KvFormat::kF32 ? sinks.data() : nullptr;
      ThreadPool one(1);
      std::vector<float> alone;
      for (const QuerySpan& span : spans) {
        const auto out = fixture.run(*GetParam().table, params, {span}, one);
        EXPECT_TRUE(fixture.scratch().plan().shared().groups().empty());
        alone.insert(alone.end(), out.begin(), out.end());
      }
      for (const int threads : {1, 2, 5}) {
        ThreadPool pool(threads);
        EXPECT_EQ(fixture.run(*GetParam().table, params, spans, pool), alone)
            << shape.heads << "/" << shape.kv_heads << ", " << threads << " threads";
        const bool fits = shape.heads / shape.kv_heads <= kMaxTileRows / 2;
        EXPECT_EQ(fixture.scratch().plan().shared().num_members(), fits ? 7 : 0);
        EXPECT_EQ(fixture.scratch().plan().prefixes().tiles.empty(), !fits);
      }
    }
  }
}

}  // namespace
}  // namespace dunlin
