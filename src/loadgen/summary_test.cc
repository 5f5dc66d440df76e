#include "loadgen/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/percentile.h"

namespace dunlin::loadgen {
namespace {

using ::testing::HasSubstr;

RequestRecord answered(double start_s, double first_s, std::vector<float> gaps_s) {
  RequestRecord record;
  record.start_s = start_s;
  record.first_piece_s = record.last_piece_s = first_s;
  for (const float gap : gaps_s) record.last_piece_s += gap;
  record.end_s = record.last_piece_s;
  record.gaps_s = std::move(gaps_s);
  record.output_tokens = record.num_pieces();
  record.prompt_tokens = 10;
  record.has_usage = true;
  return record;
}

RequestRecord failed(Failure failure, const char* message) {
  RequestRecord record;
  record.failure = failure;
  record.message = message;
  return record;
}

TEST(Percentile, InterpolatesAsNumPyDoes) {
  const std::vector<double> values{1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(values, 50), 3);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 6.8);
  EXPECT_DOUBLE_EQ(percentile(values, 99), 7.88);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 8);
  EXPECT_DOUBLE_EQ(percentile(std::vector<double>{5}, 99), 5);
  EXPECT_DOUBLE_EQ(percentile({}, 99), 0);
}

TEST(Distribution, HasTheUsualFigures) {
  const std::vector<double> wanted{50, 99};
  const Distribution d = distribution({4, 1, 8, 2}, wanted);
  EXPECT_EQ(d.count, 4u);
  EXPECT_DOUBLE_EQ(d.mean, 3.75);
  EXPECT_DOUBLE_EQ(d.median, 3);
  EXPECT_NEAR(d.stddev, 2.680951, 1e-6);
  EXPECT_DOUBLE_EQ(d.most, 8);
  EXPECT_DOUBLE_EQ(d.percentiles[0], 3);
}

TEST(Summary, CountsAndRates) {
  const std::vector<RequestRecord> records = {
      answered(0, .1, {.05f, .05f}), answered(.1, .2, {.1f}), failed(Failure::kRefused, "later"),
      failed(Failure::kRefused, "still later"), failed(Failure::kLeft, "")};
  SummaryOptions options;
  options.duration_s = 2;
  const Summary summary = summarize(records, options);
  EXPECT_EQ(summary.completed, 2);
  EXPECT_EQ(summary.failed, 2);
  EXPECT_EQ(summary.by_failure[static_cast<int>(Failure::kLeft)], 1);
  EXPECT_EQ(summary.example[static_cast<int>(Failure::kRefused)], "later");
  EXPECT_EQ(summary.input_tokens, 20);
  EXPECT_EQ(summary.output_tokens, 5);
  EXPECT_DOUBLE_EQ(summary.request_throughput, 1);
  EXPECT_DOUBLE_EQ(summary.output_throughput, 2.5);
  EXPECT_DOUBLE_EQ(summary.total_throughput, 12.5);
  EXPECT_DOUBLE_EQ(summary.peak_output_throughput, 5);
  EXPECT_EQ(summary.peak_concurrent, 2);
  EXPECT_NEAR(summary.ttft_ms.mean, 150, 1e-9);
  EXPECT_NEAR(summary.tpot_ms.mean, 75, 1e-4);
  EXPECT_EQ(summary.itl_ms.count, 3u);
  EXPECT_NEAR(summary.e2el_ms.most, 300, 1e-4);
}

TEST(Summary, OfNothingIsAllZero) {
  const Summary summary = summarize({}, SummaryOptions());
  EXPECT_EQ(summary.completed, 0);
  EXPECT_EQ(summary.output_throughput, 0);
  EXPECT_EQ(summary.ttft_ms.percentiles, std::vector<double>{0});
}

TEST(Goodput, CountsRequestsThatKeepEveryLimit) {
  const auto limits = parse_goodput({"ttft:150", "tpot:60"});
  ASSERT_TRUE(limits.has_value());
  EXPECT_TRUE(is_good(answered(0, .1, {.05f, .05f}), *limits));
  EXPECT_FALSE(is_good(answered(0, .2, {.05f}), *limits));
  EXPECT_FALSE(is_good(answered(0, .1, {.07f}), *limits));
  EXPECT_TRUE(is_good(answered(0, .1, {}), *limits));  // one token: no time between
  EXPECT_FALSE(is_good(failed(Failure::kTimeout, ""), *limits));
}

TEST(Goodput, RefusesWhatIsNoLimit) {
  for (const char* text : {"ttft", "ttft:", "ttft:x", "ttft:5s", "ttft:-1", "ttft:0", "ttft:inf",
                           "speed:5", ":5", ""}) {
    const auto limits = parse_goodput({text});
    ASSERT_FALSE(limits.has_value()) << text;
    EXPECT_THAT(limits.error().message(), HasSubstr("--goodput"));
  }
  EXPECT_FALSE(parse_goodput({})->is_set);
}

}  // namespace
}  // namespace dunlin::loadgen
