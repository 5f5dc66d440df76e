#include "frontend/output_processor.h"

#include <gtest/gtest.h>

#include "support/fake_tokenizer.h"

namespace dunlin {
namespace {

TokenOutput token(TokenId id, FinishReason finish = FinishReason::kNone,
                  bool with_logprobs = false) {
  TokenOutput output;
  output.token = id;
  output.finish = finish;
  if (with_logprobs) output.logprobs = TokenLogprobs{-1.0f, 0, {{id, -1.0f}}};
  return output;
}

struct Fed {
  std::string text;
  std::vector<std::string> pieces;
  std::vector<TokenLogprobText> logprobs;
  TextDelta last;
};

Fed feed(const GenerationOptions& options, const std::string& bytes, FinishReason finish,
         bool with_logprobs = false) {
  const FakeTokenizer tokenizer;
  OutputProcessor processor(tokenizer, options, 0);
  Fed fed;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool is_last = i + 1 == bytes.size();
    const auto id = static_cast<TokenId>(static_cast<unsigned char>(bytes[i]));
    fed.last = processor.process(token(id, is_last ? finish : FinishReason::kNone, with_logprobs));
    fed.text += fed.last.text;
    fed.pieces.push_back(fed.last.text);
    for (auto& entry : fed.last.logprobs) fed.logprobs.push_back(entry);
    if (fed.last.finish != FinishReason::kNone) break;
  }
  return fed;
}

TEST(OutputProcessor, waits_for_the_rest_of_a_character) {
  const Fed fed = feed({}, "h\xC3\xA9!", FinishReason::kLength);
  EXPECT_EQ(fed.pieces, (std::vector<std::string>{"h", "", "\xC3\xA9", "!"}));
}

TEST(OutputProcessor, ends_a_cut_character_with_a_replacement) {
  EXPECT_EQ(feed({}, "a\xE2\x82", FinishReason::kLength).text, "a\xEF\xBF\xBD");
}

TEST(OutputProcessor, leaves_the_ending_token_out_of_the_text) {
  const FakeTokenizer tokenizer;
  OutputProcessor processor(tokenizer, {}, 0);
  EXPECT_EQ(processor.process(token('a')).text, "a");
  const TextDelta last = processor.process(token('b', FinishReason::kStop, true));
  EXPECT_EQ(last.text, "");
  EXPECT_TRUE(last.logprobs.empty());
  EXPECT_EQ(last.finish, FinishReason::kStop);
  EXPECT_EQ(last.token, TokenId{'b'});
}

TEST(OutputProcessor, gives_out_held_text_when_the_generation_ends) {
  GenerationOptions options;
  options.stop.strings = {"xyz"};
  const Fed fed = feed(options, "axy", FinishReason::kLength);
  EXPECT_EQ(fed.text, "axy");
  EXPECT_EQ(fed.last.finish, FinishReason::kLength);
}

TEST(OutputProcessor, stops_at_a_stop_string_and_says_which) {
  GenerationOptions options;
  options.stop.strings = {"cd", "zz"};
  const Fed fed = feed(options, "abcdef", FinishReason::kLength);
  EXPECT_EQ(fed.text, "ab");
  EXPECT_EQ(fed.last.finish, FinishReason::kStop);
  EXPECT_EQ(fed.last.stop_string, "cd");
}

TEST(OutputProcessor, passes_over_stop_strings_before_min_tokens) {
  GenerationOptions options;
  options.stop.strings = {"b"};
  options.sampling.min_tokens = 3;
  EXPECT_EQ(feed(options, "abab", FinishReason::kLength).text, "aba");
}

TEST(OutputProcessor, tells_log_probabilities_of_the_text_that_is_given_out_only) {
  GenerationOptions options;
  options.sampling.num_logprobs = 1;
  options.stop.strings = {"cd"};
  const Fed fed = feed(options, "abcdef", FinishReason::kLength, true);
  ASSERT_EQ(fed.logprobs.size(), 2u);
  EXPECT_EQ(fed.logprobs[0].token, "a");
  EXPECT_EQ(fed.logprobs[1].token, "b");
  EXPECT_EQ(fed.logprobs[1].top.size(), 1u);
}

TEST(OutputProcessor, tells_the_bytes_of_every_part_of_a_character) {
  GenerationOptions options;
  options.sampling.num_logprobs = 0;
  const std::string text = "\xE2\x82\xAC!";
  const Fed fed = feed(options, text, FinishReason::kLength, true);
  std::string bytes;
  int num_chars = 0;
  for (const auto& entry : fed.logprobs) {
    bytes += entry.bytes;
    num_chars += entry.num_chars;
  }
  EXPECT_EQ(bytes, text);
  EXPECT_EQ(num_chars, 2);
  EXPECT_EQ(fed.logprobs[0].token, "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace dunlin
