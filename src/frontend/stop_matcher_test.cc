#include "frontend/stop_matcher.h"

#include <random>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

struct Seen {
  std::string text;
  std::optional<std::string> matched;
};

Seen feed(StopSpec spec, const std::vector<std::string>& pieces) {
  StopMatcher matcher(std::move(spec));
  Seen seen;
  for (const std::string& piece : pieces) {
    seen.text += matcher.push(piece, true);
    if (matcher.matched()) break;
  }
  if (!matcher.matched()) seen.text += matcher.finish();
  seen.matched = matcher.matched();
  return seen;
}

TEST(StopMatcher, cuts_a_stop_string_that_spans_pieces) {
  const Seen seen = feed({{"ver nick"}}, {"copper sil", "ver", " ni", "ckel cobalt"});
  EXPECT_EQ(seen.text, "copper sil");
  EXPECT_EQ(seen.matched, "ver nick");
}

TEST(StopMatcher, never_gives_out_what_may_become_a_stop_string) {
  StopMatcher matcher({{"STOP"}});
  EXPECT_EQ(matcher.push("a ST", true), "a ");
  EXPECT_EQ(matcher.push("O", true), "");
  EXPECT_EQ(matcher.push("X", true), "STOX");
  EXPECT_EQ(matcher.push("S", true), "");
  EXPECT_EQ(matcher.finish(), "S");
}

TEST(StopMatcher, restarts_inside_a_failed_match) {
  EXPECT_EQ(feed({{"aab"}}, {"a", "a", "a", "b", "c"}).text, "a");
  EXPECT_EQ(feed({{"abab"}}, {"aba", "bab"}).text, "");
}

TEST(StopMatcher, takes_the_longest_of_those_that_end_together) {
  const Seen seen = feed({{"b", "ab"}}, {"xab"});
  EXPECT_EQ(seen.text, "x");
  EXPECT_EQ(seen.matched, "ab");
}

TEST(StopMatcher, keeps_the_stop_string_where_asked) {
  const Seen seen = feed({{"END"}, true}, {"one E", "ND two"});
  EXPECT_EQ(seen.text, "one END");
}

TEST(StopMatcher, passes_over_a_stop_string_that_ends_too_early) {
  StopMatcher matcher({{"ab"}});
  std::string text = matcher.push("ab", false);
  text += matcher.push("ab", true);
  EXPECT_EQ(text, "ab");
  EXPECT_TRUE(matcher.matched());
}

// Against the plain definition: the first position where any stop string ends.
TEST(StopMatcher, equals_a_search_of_the_whole_text_however_it_is_cut) {
  std::mt19937 random(7);
  const auto draw = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += static_cast<char>('a' + draw(3));
    StopSpec spec;
    for (int i = 0; i <= draw(3); ++i) {
      std::string stop;
      for (int k = 0; k <= draw(5); ++k) stop += static_cast<char>('a' + draw(3));
      spec.strings.push_back(stop);
    }
    std::string expected = text;
    for (std::size_t end = 1; end <= text.size() && expected == text; ++end) {
      std::size_t longest = 0;
      for (const std::string& stop : spec.strings) {
        if (std::string_view(text).substr(0, end).ends_with(stop))
          longest = std::max(longest, stop.size());
      }
      if (longest > 0) expected = text.substr(0, end - longest);
      if (longest > 0) break;
    }
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = static_cast<std::size_t>(draw(4));
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    EXPECT_EQ(feed(spec, pieces).text, expected) << text;
  }
}

}  // namespace
}  // namespace dunlin
