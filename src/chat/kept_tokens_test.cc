#include "chat/kept_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/fake_tokenizer.h"

namespace dunlin::chat {
namespace {

using Ids = std::vector<TokenId>;

// What the tokenizer makes of a text; "|" stands for a control token.
Ids ids(std::string_view text) {
  Ids out;
  for (const char c : text)
    out.push_back(c == '|' ? FakeTokenizer::kEnd : static_cast<unsigned char>(c));
  return out;
}

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class KeptTokensTest : public testing::Test {
 protected:
  Ids prompt(std::string_view rendered) const { return kept_.prompt(tokenizer_, ids(rendered)); }

  FakeTokenizer tokenizer_;
  KeptTokens kept_;
  const Ids chosen_{1000, 1001};  // what the model chose to say "answer" with
};

TEST_F(KeptTokensTest, is_the_rendering_where_nothing_is_kept) {
  EXPECT_EQ(prompt("q1|"), ids("q1|"));
}

TEST_F(KeptTokensTest, puts_the_chosen_tokens_in_their_place) {
  kept_.keep(ids("q1|"), ids("q1|"), "answer", chosen_);
  EXPECT_EQ(prompt("q1|answer|q2|"), joined(joined(ids("q1|"), chosen_), ids("|q2|")));
}

TEST_F(KeptTokensTest, keeps_those_of_every_turn) {
  kept_.keep(ids("q1|"), ids("q1|"), "answer", chosen_);
  const Ids second = prompt("q1|answer|q2|");
  kept_.keep(ids("q1|answer|q2|"), second, "more", {1002});
  EXPECT_EQ(prompt("q1|answer|q2|more|q3|"), joined(joined(second, {1002}), ids("|q3|")));
}

TEST_F(KeptTokensTest, takes_the_rendering_of_an_answer_that_it_cannot_find) {
  kept_.keep(ids("q1|"), ids("q1|"), " answer", chosen_);  // a template that trims
  EXPECT_EQ(prompt("q1|answer|q2|"), ids("q1|answer|q2|"));
  kept_.keep(ids("q1|"), ids("q1|"), "answer", {});  // cut by a stop string
  EXPECT_EQ(prompt("q1|answer|q2|"), ids("q1|answer|q2|"));
  kept_.keep(ids("q1|"), ids("q1|"), "", {1000});
  EXPECT_EQ(prompt("q1||q2|"), ids("q1||q2|"));
}

TEST_F(KeptTokensTest, takes_the_rendering_of_another_beginning) {
  kept_.keep(ids("q1|"), ids("q1|"), "answer", chosen_);
  EXPECT_EQ(prompt("x1|answer|q2|"), ids("x1|answer|q2|"));
  EXPECT_EQ(prompt("q"), ids("q"));
  kept_.clear();
  EXPECT_EQ(prompt("q1|answer|q2|"), ids("q1|answer|q2|"));
}

}  // namespace
}  // namespace dunlin::chat
