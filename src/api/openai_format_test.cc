#include "api/openai_format.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

// The model's name tries to look like the place where the text goes.
const AnswerInfo kInfo = {"cmpl-1", R"(m","content":"","text":"")", 17};

TEST(TextChunks, AreTheChunksWithTheSameText) {
  for (const std::string text : {"", "a", "\"", "\\", "a\nb\t\x01\x7f", "gr\xc3\xbc\xc3\x9f",
                                 "\xf0\x9f\x90\xa6", "broken \xc3", R"("text":"")", "</script>"}) {
    ChoiceText delta;
    delta.text = text;
    for (const bool with_usage : {false, true}) {
      ChunkState state;
      const auto chunk = [&](bool is_chat) {
        std::string out = "data: ";
        TextChunks(kInfo, 3, is_chat, with_usage).append(text, out);
        return out.substr(6);
      };
      EXPECT_EQ(chunk(true), format_chat_chunk(kInfo, 3, delta, LogprobsForm::kNone, with_usage));
      EXPECT_EQ(chunk(false),
                format_completion_chunk(kInfo, 3, delta, LogprobsForm::kNone, with_usage, state));
    }
  }
}

}  // namespace
}  // namespace dunlin
