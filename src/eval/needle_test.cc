#include "eval/needle.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "eval/filler_text.h"
#include "eval/heat_map.h"
#include "support/fake_session.h"

namespace dunlin::eval {
namespace {

std::string text_of(const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids)
    if (id < 256) text += static_cast<char>(id);
  return text;
}

// Answers as one who has read everything.
std::vector<TokenId> reader(const EngineRequest& request) {
  const std::string text = text_of(request.prompt), mark = "The pass key is ";
  const std::size_t at = text.find(mark) + mark.size();
  std::vector<TokenId> answer;
  for (const char c : " It is " + text.substr(at, 5) + ".")
    answer.push_back(static_cast<unsigned char>(c));
  answer.push_back(FakeTokenizer::kEnd);
  return answer;
}

TEST(FillerText, IsTheSameEachTimeAndHoldsNoNumber) {
  EXPECT_EQ(filler_sentence(1, 2, 3), filler_sentence(1, 2, 3));
  std::set<std::string> known;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::string sentence = filler_sentence(0, 0, i);
    EXPECT_TRUE(sentence.ends_with('.')) << sentence;
    EXPECT_EQ(sentence.find_first_of("0123456789\""), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find("  "), std::string::npos) << sentence;
    known.insert(sentence);
  }
  EXPECT_GT(known.size(), 450u);
  EXPECT_NE(filler_sentence(0, 1, 0), filler_sentence(0, 0, 0));
  EXPECT_NE(filler_sentence(1, 0, 0), filler_sentence(0, 0, 0));
}

TEST(HoldsAnswer, LooksForWholeWords) {
  EXPECT_TRUE(holds_answer("The pass key is 48213.", "48213"));
  EXPECT_TRUE(holds_answer("Silver Heron", "silver heron"));
  EXPECT_TRUE(holds_answer("148213 or 48213", "48213"));
  EXPECT_FALSE(holds_answer("It is 482130.", "48213"));
  EXPECT_FALSE(holds_answer("It is a48213", "48213"));
  EXPECT_FALSE(holds_answer("", "48213"));
}

TEST(Needle, LiesAsDeepAsWantedInATextAsLongAsWanted) {
  FakeSession fake(reader);
  const Session& session = *fake.session;
  const Fact fact = draw_fact(NeedleTask::kPasskey, 3, 4);
  for (const int length : {600, 1500, 3000})
    for (const double depth : {0.0, 0.25, 0.5, 1.0}) {
      const auto prompt = needle_prompt(session, fact, 3, 0, depth, length, false);
      ASSERT_TRUE(prompt.has_value()) << prompt.error().message();
      EXPECT_LE(prompt->size(), static_cast<std::size_t>(length));
      EXPECT_GT(prompt->size(), static_cast<std::size_t>(length) - 100);
      const std::string text = text_of(*prompt);
      const std::size_t begin = text.find("\n\n") + 2, end = text.find("\n\n", begin);
      const std::size_t at = text.find(fact.sentence);
      ASSERT_NE(at, std::string::npos);
      EXPECT_EQ(text.find(fact.sentence, at + 1), std::string::npos);
      const double room = static_cast<double>(end - begin - fact.sentence.size());
      EXPECT_NEAR(static_cast<double>(at - begin) / room, depth, 60 / room);
      EXPECT_TRUE(text.ends_with("key that is hidden in the text?\nThe pass key is"));
    }
  const auto chat = needle_prompt(session, fact, 3, 0, 0.5, 600, true);
  EXPECT_TRUE(text_of(*chat).ends_with("hidden in the text?assistant: ")) << text_of(*chat);
  EXPECT_EQ(needle_prompt(session, fact, 3, 0, 0.5, 60, false).error().code(),
            StatusCode::kInvalidArgument);
}

TEST(Needle, TextsOfOneSampleBeginAlike) {
  FakeSession fake(reader);
  const Fact one = draw_fact(NeedleTask::kPasskey, 3, 1),
             two = draw_fact(NeedleTask::kNeedle, 3, 2);
  const auto a = needle_prompt(*fake.session, one, 3, 0, 0.5, 1000, false).value();
  const auto b = needle_prompt(*fake.session, two, 3, 0, 1.0, 3000, false).value();
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
  EXPECT_GT(differ, 400);
}

TEST(Needle, CountsWhatIsFoundByCell) {
  FakeSession fake([](const EngineRequest& request) {
    return request.prompt.size() > 1000 ? std::vector<TokenId>{'?', FakeTokenizer::kEnd}
                                        : reader(request);
  });
  const NeedleOptions options{NeedleTask::kPasskey, {800, 1600}, {0, 0.5, 1}, 3, 7, false};
  int num_told = 0;
  const auto grid = measure_needles(*fake.session, options, [&](int done, int total) {
    EXPECT_EQ(done, ++num_told);
    EXPECT_EQ(total, 18);
  });
  ASSERT_TRUE(grid.has_value()) << grid.error().message();
  EXPECT_EQ(num_told, 18);
  for (std::size_t depth = 0; depth < 3; ++depth) {
    EXPECT_EQ(grid->share(depth, 0), 1);
    EXPECT_EQ(grid->share(depth, 1), 0);
  }
  EXPECT_EQ(grid->share_of_length(0), 1);
  EXPECT_EQ(grid->share_of_all(), 0.5);
}

TEST(HeatMap, DrawsACellForEachShare) {
  const std::string svg =
      heat_map_svg({"a < b", "depth", "length", {"0%", "100%"}, {"512"}, {0, 1}});
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find("#c2503d"), std::string::npos);
  EXPECT_NE(svg.find("#5b9e5b"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace dunlin::eval
