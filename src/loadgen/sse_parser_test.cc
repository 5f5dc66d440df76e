#include "loadgen/sse_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace dunlin::loadgen {
namespace {

using ::testing::ElementsAre;
using Events = std::vector<std::string>;

Events parse(const std::vector<std::string_view>& pieces) {
  SseParser parser;
  Events events;
  for (const std::string_view piece : pieces)
    EXPECT_TRUE(parser.push(piece, [&](std::string_view data) { events.emplace_back(data); }));
  return events;
}

TEST(SseParser, GivesTheDataOfEachEvent) {
  EXPECT_THAT(parse({"data: a\n\ndata: b\n\n"}), ElementsAre("a", "b"));
  EXPECT_THAT(parse({"data:a\n\ndata:  b\n\n"}), ElementsAre("a", " b"));
}

TEST(SseParser, PassesOverCommentsAndOtherFields) {
  EXPECT_THAT(parse({": ping\n\nevent: x\nid: 3\nretry: 1\ndatabase: no\ndata: a\n\n\n\n"}),
              ElementsAre("a"));
}

TEST(SseParser, JoinsLinesOfData) {
  EXPECT_THAT(parse({"data: a\ndata: b\ndata\n\n"}), ElementsAre("a\nb\n"));
}

TEST(SseParser, AnEventWithoutItsBlankLineIsNone) {
  EXPECT_THAT(parse({"data: a\n"}), ElementsAre());
}

TEST(SseParser, CutsMakeNoDifference) {
  for (const std::string_view end : {"\n", "\r\n", "\r"}) {
    std::string text;
    for (const std::string_view line : {"data: {\"a\": 1}", "", ": x", "data: b", "data: c", ""})
      text += std::string(line) + std::string(end);
    for (std::size_t first = 0; first <= text.size(); ++first) {
      for (std::size_t second = first; second <= text.size(); ++second) {
        const std::string_view all = text;
        EXPECT_THAT(parse({all.substr(0, first), all.substr(first, second - first),
                           all.substr(second), "\n"}),
                    ElementsAre("{\"a\": 1}", "b\nc"));
      }
    }
  }
}

TEST(SseParser, AnEndlessLineIsRefused) {
  SseParser parser;
  const std::string piece(1 << 20, 'x');
  bool is_ok = true;
  for (int i = 0; i < 8 && is_ok; ++i) is_ok = parser.push(piece, [](std::string_view) {});
  EXPECT_FALSE(is_ok);
  EXPECT_FALSE(parser.push("data: a\n\n", [](std::string_view) { FAIL(); }));
}

}  // namespace
}  // namespace dunlin::loadgen
