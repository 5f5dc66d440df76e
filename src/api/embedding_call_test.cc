// POST /v1/embeddings: bodies, refusals, answers.
#include <cmath>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/api_call.h"
#include "support/fake_session.h"

namespace dunlin {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string answer_of(FakeSession& fake, const json& body) {
  auto call = start_embedding(*fake.session, body.dump());
  if (!call) {
    ADD_FAILURE() << call.error().message;
    return "";
  }
  EXPECT_FALSE((*call)->is_streaming());
  (*call)->on_ready([] {});
  for (int i = 0; i < 2000; ++i) {
    const CallProgress progress = (*call)->advance();
    if (progress.done) {
      EXPECT_FALSE(progress.error);
      return progress.bytes;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << "the call did not end";
  return "";
}

ApiError error_of(FakeSession& fake, const json& body) {
  const auto call = start_embedding(*fake.session, body.dump());
  if (!call) return call.error();
  ADD_FAILURE() << body.dump() << " was taken";
  return {};
}

TEST(EmbeddingCall, answers_as_openai_does) {
  FakeSession fake(say(""));
  const json answer = json::parse(answer_of(fake, {{"input", "ab"}, {"model", "fake"}}));
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "fake");
  EXPECT_EQ(answer["data"][0]["object"], "embedding");
  EXPECT_EQ(answer["data"][0]["index"], 0);
  EXPECT_EQ(answer["data"][0]["embedding"].size(), 8u);
  EXPECT_EQ(answer["usage"], json({{"prompt_tokens", 3}, {"total_tokens", 3}}));  // with BOS
}

TEST(EmbeddingCall, takes_inputs_in_four_forms) {
  FakeSession fake(say(""));
  const auto size = [&](const json& input) {
    return json::parse(answer_of(fake, {{"input", input}}))["data"].size();
  };
  EXPECT_EQ(size("a"), 1u);
  EXPECT_EQ(size({"a", "b"}), 2u);
  EXPECT_EQ(size({1, 2, 3}), 1u);
  EXPECT_EQ(size({{1, 2}, {3}, {4}}), 3u);
}

TEST(EmbeddingCall, gives_the_same_floats_as_base64) {
  FakeSession fake(say(""));
  json body = {{"input", {{0, 0, 3}}}, {"dimensions", 3}};
  const json numbers = json::parse(answer_of(fake, body))["data"][0]["embedding"];
  body["encoding_format"] = "base64";
  const std::string text = json::parse(answer_of(fake, body))["data"][0]["embedding"];
  // {3, 1, 1} over its length.
  EXPECT_EQ(text, "i49nP7Jfmj6yX5o+");
  EXPECT_FLOAT_EQ(numbers[0].get<float>(), 3 / std::sqrt(11.0f));
}

TEST(EmbeddingCall, truncates_only_where_it_is_asked_for) {
  EngineConfig config = FakeEngine::default_config();
  config.max_context = 10;
  FakeSession fake(say(""), kFakeTemplate, config);
  const std::string text(40, 'x');
  const ApiError error = error_of(fake, {{"input", {"a", text}}});
  EXPECT_EQ(error.http_status, 400);
  EXPECT_EQ(error.param, "input[1]");
  EXPECT_EQ(error.code, "context_length_exceeded");
  EXPECT_THAT(error.message, HasSubstr("41 tokens"));
  EXPECT_THAT(error.message, HasSubstr("10"));
  const auto tokens = [&](const json& limit) {
    const json body = {{"input", text}, {"truncate_prompt_tokens", limit}};
    return json::parse(answer_of(fake, body))["usage"]["total_tokens"].get<int>();
  };
  EXPECT_EQ(tokens(-1), 10);
  EXPECT_EQ(tokens(4), 4);
  EXPECT_EQ(tokens(1), 1);
}

TEST(EmbeddingCall, ends_where_its_time_is_over) {
  FakeSession fake(say(""));
  fake.engine->is_paused = true;
  auto call = start_embedding(*fake.session, R"({"input":"a","deadline_ms":20})");
  ASSERT_TRUE(call);
  (*call)->on_ready([] {});
  CallProgress progress;
  for (int i = 0; i < 2000 && !progress.done; ++i) {
    progress = (*call)->advance();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(progress.error);
  EXPECT_EQ(progress.error->http_status, 503);
  EXPECT_EQ(progress.error->code, "deadline_exceeded");
}

TEST(EmbeddingCall, names_the_field_that_is_wrong) {
  FakeSession fake(say(""));
  const auto refused = [&](json body, const std::string& param, const std::string& message) {
    if (!body.contains("input")) body["input"] = "a";
    const ApiError error = error_of(fake, body);
    EXPECT_EQ(error.http_status, 400) << body;
    EXPECT_EQ(error.param, param) << body;
    EXPECT_THAT(error.message, HasSubstr(message)) << body;
  };
  refused({{"input", ""}}, "input", "empty");
  refused({{"input", json::array()}}, "input", "empty");
  refused({{"input", {"a", ""}}}, "input[1]", "empty");
  refused({{"input", {{1}, json::array()}}}, "input[1]", "empty");
  refused({{"input", {1, 999}}}, "input[1]", "999");
  refused({{"input", 7}}, "input", "array");
  refused({{"dimensions", 9}}, "dimensions", "8");
  refused({{"dimensions", 0}}, "dimensions", "1");
  refused({{"encoding_format", "hex"}}, "encoding_format", "base64");
  refused({{"pooling", "max"}}, "pooling", "mean");
  refused({{"deadline_ms", 0}}, "deadline_ms", "1");
  refused({{"queue_timeout_ms", "soon"}}, "queue_timeout_ms", "integer");
  refused({{"truncate_prompt_tokens", 0}}, "truncate_prompt_tokens", "-1");
  refused({{"input", json(std::vector<std::string>(2049, "a"))}}, "input", "2048");
  refused({{"input", json(std::vector<std::string>(80, std::string(4000, 'a')))}}, "input",
          "300000");
  const ApiError other = error_of(fake, {{"input", "a"}, {"model", "other"}});
  EXPECT_EQ(other.http_status, 404);
}

TEST(EmbeddingCall, an_encoder_writes_no_text) {
  FakeSession fake(say(""));
  fake.engine->limits_of_model.is_encoder = true;
  const auto chat = start_chat(*fake.session, R"({"messages":[{"role":"user","content":"hi"}]})");
  const auto completion = start_completion(*fake.session, R"({"prompt":"hi"})");
  for (const auto* call : {&chat, &completion}) {
    ASSERT_FALSE(*call);
    EXPECT_EQ(call->error().http_status, 400);
    EXPECT_THAT(call->error().message, HasSubstr("/v1/embeddings"));
  }
  EXPECT_FALSE(answer_of(fake, {{"input", "a"}}).empty());
}

}  // namespace
}  // namespace dunlin
