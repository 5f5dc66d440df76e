#include "server/api_keys.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace dunlin {
namespace {

std::string problem(std::string_view text) {
  const auto keys = parse_api_keys(text, "keys");
  return keys ? "none" : keys.error().message();
}

TEST(ApiKeys, ReadsNamesKeysAndShares) {
  const auto keys =
      parse_api_keys("# staff\n\n alice  secret-of-alice\r\nbob secret-of-bob 2.5", "k");
  ASSERT_TRUE(keys.has_value()) << keys.error().message();
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].name, "alice");
  EXPECT_EQ((*keys)[0].key, "secret-of-alice");
  EXPECT_EQ((*keys)[0].share, 1);
  EXPECT_EQ((*keys)[1].share, 2.5);
}

TEST(ApiKeys, SaysInWhichLineSomethingIsWrongAndNeverQuotesAKey) {
  EXPECT_EQ(problem("\nalice"), "keys, line 2: has 1 words; write NAME KEY, or NAME KEY SHARE");
  EXPECT_EQ(problem("a 12345678 1 x"),
            "keys, line 1: has 4 words; write NAME KEY, or NAME KEY SHARE");
  EXPECT_EQ(problem("alice short"),
            "keys, line 1: the key of alice must be printable ASCII of 8 to 512 characters");
  EXPECT_EQ(problem("a 12345678\nb 12345678"), "keys, line 2: b has the same key as a");
  EXPECT_EQ(problem("a 12345678\na 87654321"), "keys, line 2: a has a key already");
  for (const char* share : {"0", "-1", "x", "1001", "nan", "1e", "inf"}) {
    EXPECT_EQ(problem(std::string("a 12345678 ") + share),
              "keys, line 1: the share of a must be a number from 0.001 to 1000");
  }
  EXPECT_EQ(problem("# nobody\n"), "keys holds no key; write lines NAME KEY");
}

TEST(ApiKeys, TakesAThousandKeysAndNoMore) {
  std::string text;
  for (int i = 0; i < 1024; ++i)
    text += "n" + std::to_string(i) + " key-of-" + std::to_string(i) + "\n";
  EXPECT_EQ(parse_api_keys(text, "k")->size(), 1024u);
  EXPECT_EQ(problem(text + "more key-of-more"), "keys, line 1025: more than 1024 keys");
}

TEST(ApiKeys, AFileThatOthersCanReadIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/keys";
  EXPECT_EQ(read_api_keys(path).error().code(), StatusCode::kNotFound);
  std::ofstream(path) << "alice secret-of-alice\n";
  using std::filesystem::perms;
  std::filesystem::permissions(path, perms::owner_read | perms::owner_write | perms::others_read);
  const auto open = read_api_keys(path);
  ASSERT_FALSE(open.has_value());
  EXPECT_EQ(open.error().code(), StatusCode::kPermissionDenied);
  EXPECT_NE(open.error().message().find("chmod o-rw"), std::string::npos);
  std::filesystem::permissions(path, perms::owner_read | perms::owner_write);
  EXPECT_EQ(read_api_keys(path)->size(), 1u);
}

TEST(ApiKeys, FindsWhoseKeyItIs) {
  const std::vector<ApiKey> keys = {{"a", "12345678"}, {"b", "87654321"}};
  EXPECT_EQ(find_api_key(keys, "Bearer 87654321"), 1);
  EXPECT_EQ(find_api_key(keys, "bearer 12345678"), 0);
  EXPECT_EQ(find_api_key(keys, "Bearer 8765432"), std::nullopt);
  EXPECT_EQ(find_api_key(keys, "87654321"), std::nullopt);
  EXPECT_EQ(find_api_key(keys, ""), std::nullopt);
  EXPECT_EQ(find_api_key({}, "Bearer 87654321"), std::nullopt);
}

}  // namespace
}  // namespace dunlin
