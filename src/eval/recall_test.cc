#include "eval/recall.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "support/fake_session.h"

namespace dunlin::eval {
namespace {

TEST(KeyValueList, HasDifferentKeysAndGrowsAtItsEnd) {
  const KeyValueList list = draw_list(5, 0, 400);
  std::set<std::string> keys;
  for (const auto& [key, value] : list.pairs) {
    keys.insert(key);
    EXPECT_EQ(value.size(), 4u);
    EXPECT_TRUE(std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; })) << value;
  }
  EXPECT_EQ(keys.size(), 400u);
  EXPECT_TRUE(list.text().starts_with(draw_list(5, 0, 40).text()));
  EXPECT_NE(list.text(), draw_list(5, 1, 400).text());
  EXPECT_NE(list.text(), draw_list(6, 0, 400).text());
}

TEST(KeyValueList, IsAskedForDifferentLines) {
  const auto lines = draw_queries(5, 0, 50, 20);
  EXPECT_EQ(lines.size(), 20u);
  EXPECT_EQ(std::set<int>(lines.begin(), lines.end()).size(), 20u);
  EXPECT_TRUE(std::ranges::all_of(lines, [](int line) { return line >= 0 && line < 50; }));
  EXPECT_EQ(draw_queries(5, 0, 8, 20).size(), 8u);
}

// Knows the list, but for keys with an "a" near their end; says other lines too.
std::vector<TokenId> forgetful(const EngineRequest& request) {
  std::string text;
  for (const TokenId id : request.prompt)
    if (id < 256) text += static_cast<char>(id);
  const std::string key = text.substr(text.rfind('\n') + 1);
  const std::size_t at = text.find(key) + key.size();
  const std::string value = text.substr(at, text.find('\n', at) - at);
  const std::string answer = key.ends_with("a:") ? " 12\n" + value : value + "\nnext: 1234";
  std::vector<TokenId> ids;
  for (const char c : answer) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

TEST(Recall, IsTheShareOfRightNumbers) {
  FakeSession fake(forgetful);
  const RecallOptions options{{4, 40}, 10, 3, 1, false};
  const auto rows = measure_recall(*fake.session, options, {});
  ASSERT_TRUE(rows.has_value()) << rows.error().message();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].num_queries, 3 * 4);
  EXPECT_EQ((*rows)[1].num_queries, 3 * 10);
  EXPECT_GT((*rows)[1].num_tokens, 40 * 12);
  int num_known = 0;
  for (std::uint32_t sample = 0; sample < 3; ++sample) {
    const KeyValueList list = draw_list(1, sample, 40);
    for (const int line : draw_queries(1, sample, 40, 10))
      num_known += !list.pairs[static_cast<std::size_t>(line)].first.ends_with('a');
  }
  EXPECT_LT(num_known, 30);
  EXPECT_DOUBLE_EQ((*rows)[1].recall.value, num_known / 30.0);
}

}  // namespace
}  // namespace dunlin::eval
