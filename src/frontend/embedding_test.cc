#include "frontend/embedding.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/fake_session.h"

namespace dunlin {
namespace {

using std::chrono::milliseconds;

void run(EmbeddingJob& job) {
  for (int i = 0; i < 100 && !job.finished(); ++i) job.wait(milliseconds(200));
  ASSERT_TRUE(job.finished());
}

TEST(EmbeddingJob, gives_vectors_of_unit_length_in_the_order_of_the_texts) {
  FakeSession fake(say(""));
  EmbeddingJob job(*fake.engine, {{0, 0, 1}, {7}}, {});
  run(job);
  ASSERT_FALSE(job.error());
  EXPECT_EQ(job.num_prompt_tokens(), 4);
  // The fake counts tokens, plus one: {3, 2, 1, 1, 1, 1, 1, 1} and {1, 1, 1, 1, 1, 1, 1, 2}.
  const float scale = 1 / std::sqrt(9.0f + 4 + 6);
  EXPECT_FLOAT_EQ(job.vectors()[0][0], 3 * scale);
  EXPECT_FLOAT_EQ(job.vectors()[0][1], 2 * scale);
  EXPECT_FLOAT_EQ(job.vectors()[1][7], 2 / std::sqrt(11.0f));
}

TEST(EmbeddingJob, cuts_dimensions_and_then_normalises) {
  FakeSession fake(say(""));
  EmbeddingJob cut(*fake.engine, {{0, 0, 1}}, {.dimensions = 2});
  run(cut);
  ASSERT_EQ(cut.vectors()[0].size(), 2u);
  EXPECT_FLOAT_EQ(cut.vectors()[0][0], 3 / std::sqrt(13.0f));
  EmbeddingJob plain(*fake.engine, {{0, 0, 1}}, {.dimensions = 2, .normalize = false});
  run(plain);
  EXPECT_EQ(plain.vectors()[0], (std::vector<float>{3, 2}));
}

TEST(EmbeddingJob, submits_no_more_than_the_engine_runs_at_once) {
  EngineConfig config = FakeEngine::default_config();
  config.max_seqs = 3;
  FakeSession fake(say(""), kFakeTemplate, config);
  fake.engine->is_paused = true;
  EmbeddingJob job(*fake.engine, std::vector<std::vector<TokenId>>(20, {1}), {});
  job.advance();
  EXPECT_EQ(fake.engine->num_alive(), 3);
  fake.engine->is_paused = false;
  run(job);
  EXPECT_FALSE(job.error());
}

TEST(EmbeddingJob, a_full_queue_is_an_error_only_where_nothing_of_it_runs) {
  EngineConfig config = FakeEngine::default_config();
  config.max_queue = 2;
  FakeSession fake(say(""), kFakeTemplate, config);
  fake.engine->is_paused = true;
  EmbeddingJob first(*fake.engine, std::vector<std::vector<TokenId>>(5, {1}), {});
  first.advance();
  EXPECT_FALSE(first.finished());
  EmbeddingJob second(*fake.engine, {{1}}, {});
  second.advance();
  ASSERT_TRUE(second.error());
  EXPECT_EQ(second.error()->code(), StatusCode::kResourceExhausted);
}

TEST(EmbeddingJob, its_deadline_is_for_all_texts_together) {
  EngineConfig config = FakeEngine::default_config();
  config.max_seqs = 1;
  FakeSession fake(say(""), kFakeTemplate, config);
  fake.engine->step_ms = 5;
  EmbeddingJob late(*fake.engine, std::vector<std::vector<TokenId>>(1000, {1}),
                    {.deadline = milliseconds(40)});
  run(late);
  ASSERT_TRUE(late.error());
  EXPECT_EQ(late.error()->code(), StatusCode::kUnavailable);
  EXPECT_NE(late.error()->message().find("40 ms"), std::string::npos);
  EXPECT_EQ(late.ended_by(), TimeLimit::kDeadline);
  EmbeddingJob early(*fake.engine, {{1}, {2}}, {.deadline = std::chrono::hours(1)});
  run(early);
  EXPECT_FALSE(early.error());
}

TEST(EmbeddingJob, the_servers_limit_holds_where_the_request_names_none) {
  EngineConfig config = FakeEngine::default_config();
  config.request_timeout = milliseconds(20);
  FakeSession fake(say(""), kFakeTemplate, config);
  fake.engine->is_paused = true;
  EmbeddingJob job(*fake.engine, {{1}}, {});
  run(job);
  ASSERT_TRUE(job.error());
  EXPECT_EQ(job.ended_by(), TimeLimit::kDeadline);
}

TEST(EmbeddingJob, ends_when_it_is_cancelled) {
  EngineConfig config = FakeEngine::default_config();
  config.max_seqs = 2;
  FakeSession fake(say(""), kFakeTemplate, config);
  fake.engine->is_paused = true;
  EmbeddingJob job(*fake.engine, std::vector<std::vector<TokenId>>(9, {1}), {});
  job.advance();
  job.cancel();
  run(job);
  ASSERT_TRUE(job.error());
  EXPECT_EQ(job.error()->code(), StatusCode::kCancelled);
}

TEST(Pooling, HasNamesForBothDirections) {
  for (const Pooling pooling : {Pooling::kMean, Pooling::kCls, Pooling::kLast})
    EXPECT_EQ(parse_pooling(pooling_name(pooling)), pooling);
  EXPECT_FALSE(parse_pooling("none"));
}

}  // namespace
}  // namespace dunlin
