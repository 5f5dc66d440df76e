#include "api/openai_format.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

// The model's name tries to look like the place where the text goes.
const AnswerInfo kInfo = {"cmpl-1", R"(m","content":"","text":"")", 17};

TEST(TextChunks, AreTheChunksWithTheSameText) {
  for (const std::string text : {"", "a", "\"", "\\", "a\nb\t\x01\x7f", "gr\xc3\xbc\xc3\x9f",
                                 "\xf0\x9f\x90\xa6", "broken \xc3", R"("text":"")", "</script>"}) {
    const ChoiceText delta{.text = text};
    for (const bool with_usage : {false, true}) {
      ChunkState state;
      EXPECT_EQ(TextChunks(kInfo, 3, true, with_usage).with(text),
                format_chat_chunk(kInfo, 3, delta, LogprobsForm::kNone, with_usage));
      EXPECT_EQ(TextChunks(kInfo, 3, false, with_usage).with(text),
                format_completion_chunk(kInfo, 3, delta, LogprobsForm::kNone, with_usage, state));
    }
  }
}

}  // namespace
}  // namespace dunlin
