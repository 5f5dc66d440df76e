#include "loadgen/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace dunlin::loadgen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Report : public ::testing::Test {
 protected:
  Report() {
    RequestRecord record;
    record.first_piece_s = .25;
    record.last_piece_s = .5;
    record.end_s = .5;
    record.gaps_s = {.25f};
    record.prompt_tokens = 3;
    record.output_tokens = 2;
    records_.push_back(record);
    record = RequestRecord();
    record.failure = Failure::kTimeout;
    record.message = "too \xff late";
    records_.push_back(record);
    options_.duration_s = 1;
    facts_.request_rate = std::numeric_limits<double>::infinity();
  }
  std::string block() { return format_block(facts_, summarize(records_, options_), options_); }

  std::vector<RequestRecord> records_;
  SummaryOptions options_;
  RunFacts facts_;
};

TEST_F(Report, IsVllmsBlock) {
  const std::string text = block();
  EXPECT_THAT(text, HasSubstr("============ Serving Benchmark Result ============\n"));
  EXPECT_THAT(text, HasSubstr("Successful requests:                     1        \n"));
  EXPECT_THAT(text, HasSubstr("Failed requests:                         1        \n"));
  EXPECT_THAT(text, HasSubstr("  timeout:"));
  EXPECT_THAT(text, HasSubstr("---------------Time to First Token----------------\n"));
  EXPECT_THAT(text, HasSubstr("Mean TTFT (ms):                          250.00   \n"));
  EXPECT_THAT(text, HasSubstr("-----Time per Output Token (excl. 1st token)------\n"));
  EXPECT_THAT(text, HasSubstr("P99 ITL (ms):                            250.00   \n"));
  EXPECT_THAT(text, Not(HasSubstr("goodput")));
  EXPECT_THAT(text, Not(HasSubstr("configured")));
  facts_.request_rate = 2.5;
  options_.goodput.is_set = true;
  EXPECT_THAT(block(), HasSubstr("Request rate configured (RPS):           2.50     \n"));
  EXPECT_THAT(block(), HasSubstr("Request goodput (req/s):                 1.00     \n"));
}

TEST_F(Report, JsonHasVllmsNames) {
  options_.percentiles = {50, 99.9};
  const Summary summary = summarize(records_, options_);
  const auto json = nlohmann::json::parse(format_json(facts_, summary, options_, records_));
  EXPECT_EQ(json["completed"], 1);
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_EQ(json["failures"]["timeout"], 1);
  EXPECT_EQ(json["total_output_tokens"], 2);
  EXPECT_EQ(json["median_ttft_ms"], 250.0);
  EXPECT_EQ(json["p99.9_itl_ms"], 250.0);
  ASSERT_EQ(json["requests"].size(), 2u);
  EXPECT_EQ(json["requests"][0]["itl_s"][0], .25);
  EXPECT_TRUE(json["requests"][1]["ttft_s"].is_null());
  EXPECT_EQ(json["requests"][1]["failure"], "timeout");
  EXPECT_FALSE(
      nlohmann::json::parse(format_json(facts_, summary, options_, {})).contains("requests"));
}

}  // namespace
}  // namespace dunlin::loadgen
