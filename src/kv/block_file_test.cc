#include "kv/block_file.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

BlockFileId some_id() {
  BlockFileId id;
  id.identity.fill(7);
  id.key.fill(9);
  for (int i = 0; i < kBlockSize; ++i) id.tokens[static_cast<std::size_t>(i)] = 100 + i;
  return id;
}

std::vector<std::byte> some_file(std::size_t payload_size) {
  std::vector<std::byte> file(kBlockFileHeaderSize + payload_size);
  for (std::size_t i = 0; i < payload_size; ++i)
    file[kBlockFileHeaderSize + i] = static_cast<std::byte>(i * 31 + 5);
  seal_block_file(file, some_id());
  return file;
}

TEST(BlockFile, GivesBackWhatWasSealed) {
  const auto file = some_file(1000);
  const auto payload = open_block_file(file, some_id(), 1000);
  ASSERT_TRUE(payload) << payload.error().message();
  EXPECT_TRUE(std::equal(payload->begin(), payload->end(), file.begin() + kBlockFileHeaderSize));
}

TEST(BlockFile, RefusesEveryOtherBit) {
  auto file = some_file(40);
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    const auto flip = static_cast<std::byte>(1 << bit % 8);
    file[bit / 8] ^= flip;
    EXPECT_FALSE(open_block_file(file, some_id(), 40)) << "bit " << bit;
    file[bit / 8] ^= flip;
  }
  EXPECT_TRUE(open_block_file(file, some_id(), 40));
}

TEST(BlockFile, RefusesEveryOtherLength) {
  auto file = some_file(40);
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(open_block_file(std::span(file).first(size), some_id(), 40)) << size;
  file.resize(file.size() + 1);
  EXPECT_FALSE(open_block_file(file, some_id(), 40));
  EXPECT_FALSE(open_block_file(file, some_id(), 41));
}

TEST(BlockFile, RefusesOtherTokensKeysAndIdentities) {
  const auto file = some_file(40);
  BlockFileId id = some_id();
  id.tokens[3] = 1;
  EXPECT_EQ(open_block_file(file, id, 40).error().message(),
            "it holds other tokens than its name says");
  id = some_id();
  id.key[31] = 0;
  EXPECT_FALSE(open_block_file(file, id, 40));
  id = some_id();
  id.identity[0] = 0;
  EXPECT_EQ(open_block_file(file, id, 40).error().message(), "it is of another model");
}

TEST(PrefixKey, DependsOnEveryTokenTheSaltAndTheIdentity) {
  const std::vector<TokenId> a(kBlockSize, 1), b(kBlockSize, 2);
  const PrefixKey one{1}, two{2};
  const CacheSalt none, salt("s");
  EXPECT_NE(first_prefix_key(one, none), first_prefix_key(two, none));
  EXPECT_NE(first_prefix_key(one, none), first_prefix_key(one, salt));
  const PrefixKey ab = next_prefix_key(next_prefix_key(one, a.data()), b.data());
  const PrefixKey bb = next_prefix_key(next_prefix_key(one, b.data()), b.data());
  EXPECT_NE(ab, bb) << "equal tokens behind another beginning";
  PrefixKey back{};
  EXPECT_TRUE(parse_hex(to_hex(ab), back));
  EXPECT_EQ(back, ab);
  EXPECT_FALSE(parse_hex(to_hex(ab).substr(1), back));
  EXPECT_FALSE(parse_hex("G" + to_hex(ab).substr(1), back));
}

}  // namespace
}  // namespace dunlin
