#include "loadgen/answer_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace dunlin::loadgen {
namespace {

using ::testing::HasSubstr;

struct Piece {
  double at_s;
  std::string bytes;
};

RequestRecord read(const std::vector<Piece>& pieces, int status = 200) {
  RequestRecord record;
  AnswerReader reader(record);
  for (const Piece& piece : pieces)
    if (!reader.push(status, piece.bytes, piece.at_s)) break;
  reader.finish(status);
  return record;
}

std::string event(const std::string& json) { return "data: " + json + "\n\n"; }
std::string text(const std::string& words) {
  return event(R"({"choices":[{"index":0,"text":")" + words + R"(","finish_reason":null}]})");
}
std::string delta(const std::string& fields) {
  return event(R"({"choices":[{"index":0,"delta":{)" + fields + R"(},"finish_reason":null}]})");
}
const std::string kDone = "data: [DONE]\n\n";

TEST(AnswerReader, NotesWhenEachPieceCame) {
  const RequestRecord record =
      read({{1, text("a")},
            {1.5, text("b") + text("c")},
            {3, event(R"({"choices":[{"index":0,"text":"","finish_reason":"length"}]})")},
            {4, event(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,)"
                      R"("prompt_tokens_details":{"cached_tokens":4}}})")},
            {5, kDone}});
  EXPECT_TRUE(record.is_ok()) << record.message;
  EXPECT_EQ(record.first_piece_s, 1);
  EXPECT_EQ(record.last_piece_s, 1.5);
  EXPECT_EQ(record.gaps_s, (std::vector<float>{.5f, 0}));
  EXPECT_EQ(record.prompt_tokens, 7);
  EXPECT_EQ(record.cached_tokens, 4);
  EXPECT_EQ(record.output_tokens, 3);
  EXPECT_DOUBLE_EQ(record.time_per_output_token_s(), .25);
}

TEST(AnswerReader, ARoleIsNoPieceOfAChat) {
  const RequestRecord record =
      read({{1, delta(R"("role":"assistant","content":"")")},
            {2, delta(R"("content":"hi")")},
            {3, delta(R"("content":null,"reasoning_content":"hm")")},
            {4, event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})")},
            {4, kDone}});
  EXPECT_TRUE(record.is_ok());
  EXPECT_EQ(record.first_piece_s, 2);
  EXPECT_EQ(record.num_pieces(), 2);
  EXPECT_FALSE(record.has_usage);
}

TEST(AnswerReader, AnAnswerThatEndsAtOnceHasATimeToo) {
  const RequestRecord record =
      read({{2, event(R"({"choices":[{"text":"","finish_reason":"stop"}]})")}, {2, kDone}});
  EXPECT_TRUE(record.is_ok());
  EXPECT_EQ(record.first_piece_s, 2);
  EXPECT_EQ(record.num_pieces(), 1);
}

TEST(AnswerReader, TellsWhatIsWrong) {
  const auto failure = [](const std::string& bytes, int status = 200) {
    return read({{1, bytes}}, status);
  };
  EXPECT_EQ(failure(text("a")).failure, Failure::kClosed);
  EXPECT_EQ(failure("").failure, Failure::kBadAnswer);
  EXPECT_EQ(failure("<html>hello</html>").failure, Failure::kBadAnswer);
  EXPECT_EQ(failure(event("{\"choices\":[")).failure, Failure::kBadAnswer);
  EXPECT_EQ(failure(event("[1]")).failure, Failure::kBadAnswer);
  EXPECT_EQ(failure(event(R"({"choices":[3]})")).failure, Failure::kBadAnswer);
  const RequestRecord error = failure(event(R"({"error":{"message":"out of memory"}})") + kDone);
  EXPECT_EQ(error.failure, Failure::kServerError);
  EXPECT_THAT(error.message, HasSubstr("out of memory"));
  EXPECT_EQ(failure(R"({"error":{"message":"later"}})", 429).failure, Failure::kRefused);
  const RequestRecord status = failure(R"({"error":"no such model"})", 404);
  EXPECT_EQ(status.failure, Failure::kHttpStatus);
  EXPECT_THAT(status.message, HasSubstr("404: 'no such model'"));
}

TEST(AnswerReader, OddTypesAreNoCrash) {
  for (const char* json :
       {R"({})", R"({"choices":7})", R"({"choices":[]})", R"({"choices":[{}]})",
        R"({"choices":[{"delta":3,"text":5,"finish_reason":{}}]})", R"({"usage":[]})",
        R"({"usage":{"prompt_tokens":-1,"completion_tokens":1e300}})",
        R"({"usage":{"prompt_tokens":9223372036854775807,"prompt_tokens_details":[]}})"}) {
    const RequestRecord record = read({{1, event(json)}, {2, kDone}});
    EXPECT_TRUE(record.is_ok()) << json << ": " << record.message;
    EXPECT_EQ(record.prompt_tokens, 0) << json;
  }
}

TEST(AnswerReader, ALongErrorPageIsCut) {
  RequestRecord record;
  AnswerReader reader(record);
  EXPECT_FALSE(reader.push(500, std::string(100'000, 'x'), 1));
  reader.finish(500);
  EXPECT_EQ(record.failure, Failure::kHttpStatus);
  EXPECT_LT(record.message.size(), 200u);
}

}  // namespace
}  // namespace dunlin::loadgen
