#include "api/api_call.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/fake_session.h"

namespace dunlin {
namespace {

using nlohmann::json;

struct Answer {
  std::string bytes;
  std::optional<ApiError> error;
};

Answer finish(ApiCall& call) {
  Answer answer;
  for (int i = 0; i < 2000; ++i) {
    CallProgress progress = call.advance();
    answer.bytes += progress.bytes;
    if (progress.done) {
      answer.error = progress.error;
      return answer;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << "the call did not end";
  return answer;
}

json chat(FakeSession& fake, const std::string& fields, const std::string& content = "hi") {
  const json body = {{"messages", {{{"role", "user"}, {"content", content}}}}};
  json merged = body;
  merged.update(json::parse("{" + fields + "}"));
  auto call = start_chat(*fake.session, merged.dump());
  if (!call) {
    ADD_FAILURE() << call.error().message;
    return {};
  }
  return json::parse(finish(**call).bytes);
}

// The events of a stream; the last one must be [DONE].
std::vector<json> events(const std::string& bytes) {
  std::vector<json> out;
  std::string_view rest = bytes;
  bool is_done = false;
  while (!rest.empty()) {
    const auto end = rest.find("\n\n");
    EXPECT_NE(end, std::string_view::npos);
    const std::string_view line = rest.substr(0, end);
    EXPECT_TRUE(line.starts_with("data: "));
    EXPECT_FALSE(is_done);
    if (line == "data: [DONE]") {
      is_done = true;
    } else {
      out.push_back(json::parse(line.substr(6)));
    }
    rest.remove_prefix(end + 2);
  }
  EXPECT_TRUE(is_done);
  return out;
}

std::vector<json> stream(FakeSession& fake, bool is_chat, const std::string& body) {
  auto call = is_chat ? start_chat(*fake.session, body) : start_completion(*fake.session, body);
  if (!call) {
    ADD_FAILURE() << call.error().message;
    return {};
  }
  EXPECT_TRUE((*call)->is_streaming());
  return events(finish(**call).bytes);
}

TEST(ChatCall, answers_as_a_chat_completion) {
  FakeSession fake(say("Hello"));
  const json answer = chat(fake, R"("max_tokens":20)");
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(answer["model"], "fake");
  EXPECT_EQ(answer["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "Hello");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(answer["choices"][0]["logprobs"].is_null());
  const json& usage = answer["usage"];
  EXPECT_EQ(usage["completion_tokens"], 6);
  EXPECT_EQ(usage["total_tokens"].get<int>(), usage["prompt_tokens"].get<int>() + 6);
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST(ChatCall, refuses_more_choices_than_the_queue_takes) {
  FakeSession fake(say("Hello"));  // whose queue takes 64
  const auto call = start_completion(*fake.session, R"({"prompt":["a","b"],"n":33})");
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().http_status, 400);
  EXPECT_EQ(call.error().param, "n");
  EXPECT_NE(call.error().message.find("66 choices"), std::string::npos) << call.error().message;
}

TEST(ChatCall, says_length_where_max_tokens_ends_it) {
  FakeSession fake(say("Hello"));
  const json answer = chat(fake, R"("max_completion_tokens":3)");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "Hel");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
}

TEST(ChatCall, gives_each_of_n_choices_its_index) {
  FakeSession fake(say("ab"));
  const json answer = chat(fake, R"("n":3)");
  ASSERT_EQ(answer["choices"].size(), 3u);
  EXPECT_EQ(answer["choices"][2]["index"], 2);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 9);
}

TEST(ChatCall, tells_log_probabilities_as_asked) {
  FakeSession fake(say("abc"));
  const json none = chat(fake, R"("logprobs":true,"max_tokens":3)");
  ASSERT_EQ(none["choices"][0]["logprobs"]["content"].size(), 3u);
  EXPECT_EQ(none["choices"][0]["logprobs"]["content"][0]["top_logprobs"], json::array());
  const json three = chat(fake, R"("logprobs":true,"top_logprobs":3,"max_tokens":3)");
  const json& entry = three["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(entry["token"], "a");
  EXPECT_EQ(entry["bytes"], json::array({97}));
  EXPECT_EQ(entry["top_logprobs"].size(), 3u);
}

TEST(ChatCall, streams_role_text_finish_and_done) {
  FakeSession fake(say("Hey"));
  fake.engine->step_ms = 3;
  const auto chunks =
      stream(fake, true, R"({"messages":[{"role":"user","content":"x"}],"stream":true})");
  ASSERT_GE(chunks.size(), 3u);
  EXPECT_EQ(chunks.front()["choices"][0]["delta"]["role"], "assistant");
  std::string text;
  int num_finishes = 0;
  for (const json& chunk : chunks) {
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["id"], chunks.front()["id"]);
    ASSERT_EQ(chunk["choices"].size(), 1u);
    EXPECT_FALSE(chunk.contains("usage"));
    text += chunk["choices"][0]["delta"].value("content", "");
    if (!chunk["choices"][0]["finish_reason"].is_null()) ++num_finishes;
  }
  EXPECT_EQ(text, "Hey");
  EXPECT_EQ(num_finishes, 1);
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "stop");
}

TEST(ChatCall, ends_a_stream_with_usage_where_asked) {
  FakeSession fake(say("Hey"));
  const auto chunks = stream(
      fake, true,
      R"({"messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}})");
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) EXPECT_TRUE(chunks[i].at("usage").is_null());
  EXPECT_EQ(chunks.back()["choices"], json::array());
  EXPECT_EQ(chunks.back()["usage"]["completion_tokens"], 4);
}

TEST(ChatCall, streams_the_text_that_a_whole_answer_has) {
  const std::string text = "  na\xC3\xAFve \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 STOP here";
  FakeSession fake(say(text));
  const json whole = chat(fake, R"("stop":["STOP"])");
  EXPECT_EQ(whole["choices"][0]["message"]["content"], text.substr(0, text.find("STOP")));
  fake.engine->step_ms = 1;
  std::string joined;
  for (const json& chunk :
       stream(fake, true,
              R"({"messages":[{"role":"user","content":"x"}],"stream":true,"stop":"STOP"})"))
    joined += chunk["choices"][0]["delta"].value("content", "");
  EXPECT_EQ(whole["choices"][0]["message"]["content"], joined);
}

TEST(ChatCall, joins_waiting_tokens_into_one_event) {
  FakeSession fake(say(std::string(500, 'x')));
  auto call =
      start_chat(*fake.session, R"({"messages":[{"role":"user","content":"x"}],"stream":true})");
  ASSERT_TRUE(call);
  while (fake.engine->num_alive() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto chunks = events(finish(**call).bytes);
  EXPECT_EQ(chunks.size(), 3u);
}

TEST(ChatCall, refuses_a_prompt_beyond_the_context_with_the_numbers) {
  FakeSession fake(say("x"));
  const auto call = start_chat(
      *fake.session,
      json{{"messages", {{{"role", "user"}, {"content", std::string(5000, 'a')}}}}}.dump());
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().code, "context_length_exceeded");
  EXPECT_EQ(call.error().http_status, 400);
  EXPECT_NE(call.error().message.find("4096"), std::string::npos);
}

TEST(Calls, refuse_megabytes_without_turning_them_into_tokens) {
  FakeSession fake(say("x"));
  const std::string text(8 << 20, 'a');
  const auto chat =
      start_chat(*fake.session, json{{"messages", {{{"role", "user"}, {"content", text}}}}}.dump());
  const auto completion = start_completion(*fake.session, json{{"prompt", text}}.dump());
  const auto embedding = start_embedding(*fake.session, json{{"input", text}}.dump());
  for (const auto* call : {&chat, &completion, &embedding}) {
    ASSERT_FALSE(*call);
    EXPECT_EQ(call->error().http_status, 400);
    EXPECT_EQ(call->error().code, "context_length_exceeded");
    EXPECT_NE(call->error().message.find("at least"), std::string::npos) << call->error().message;
  }
}

TEST(ChatCall, answers_429_where_the_queue_is_full) {
  EngineConfig config = FakeEngine::default_config();
  config.max_queue = 1;
  FakeSession fake(say("x"), kFakeTemplate, config);
  fake.engine->is_paused = true;
  const char* body = R"({"messages":[{"role":"user","content":"x"}]})";
  const auto first = start_chat(*fake.session, body);
  ASSERT_TRUE(first);
  const auto second = start_chat(*fake.session, body);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().http_status, 429);
}

TEST(ChatCall, ends_when_cancelled) {
  FakeSession fake([](const EngineRequest&) { return std::vector<TokenId>(); });
  fake.engine->step_ms = 2;
  auto call = start_chat(*fake.session, R"({"messages":[{"role":"user","content":"x"}]})");
  ASSERT_TRUE(call);
  (*call)->cancel();
  EXPECT_EQ(finish(**call).error->http_status, 503);
}

json complete(FakeSession& fake, const std::string& body) {
  auto call = start_completion(*fake.session, body);
  if (!call) {
    ADD_FAILURE() << call.error().message;
    return {};
  }
  return json::parse(finish(**call).bytes);
}

TEST(ResetPrefixCacheCall, tells_what_was_forgotten) {
  FakeSession fake(say("unused"));
  const auto call = start_reset_prefix_cache(*fake.session);
  ASSERT_TRUE(call);
  int num_notes = 0;
  (*call)->on_ready([&] { ++num_notes; });
  EXPECT_EQ(num_notes, 1);
  const CallProgress progress = (*call)->advance();
  EXPECT_TRUE(progress.done);
  EXPECT_EQ(progress.bytes, R"({"num_dropped_blocks":7,"num_forgotten_blocks":5})");
}

TEST(CompletionCall, answers_several_prompts_in_order) {
  FakeSession fake([](const EngineRequest& request) {
    return std::vector<TokenId>{request.prompt.back(), FakeTokenizer::kEnd};
  });
  const json answer = complete(fake, R"({"prompt":["a","b"],"n":2})");
  ASSERT_EQ(answer["choices"].size(), 4u);
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"][1]["text"], "a");
  EXPECT_EQ(answer["choices"][2]["text"], "b");
  EXPECT_EQ(answer["choices"][3]["index"], 3);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 4);
}

TEST(CompletionCall, tells_log_probabilities_with_offsets) {
  FakeSession fake(say("\xC3\xA9z"));
  const json answer = complete(fake, R"({"prompt":"a","logprobs":2,"max_tokens":3})");
  const json& logprobs = answer["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["text_offset"], json::array({0, 1, 1}));
  EXPECT_EQ(logprobs["token_logprobs"].size(), 3u);
  EXPECT_EQ(logprobs["top_logprobs"][2].size(), 2u);
  const json plain = complete(fake, R"({"prompt":"a","logprobs":0,"max_tokens":3})");
  EXPECT_TRUE(plain["choices"][0]["logprobs"]["top_logprobs"].is_null());
}

TEST(CompletionCall, echoes_the_prompt_and_scores_it) {
  FakeSession fake(say("xyz"));
  const json answer =
      complete(fake, R"({"prompt":[97,98],"echo":true,"logprobs":1,"max_tokens":1})");
  EXPECT_EQ(answer["choices"][0]["text"], "abx");
  const json& logprobs = answer["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], json::array({"a", "b", "x"}));
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["token_logprobs"][1].is_number());
  const json scored = complete(fake, R"({"prompt":"ab","echo":true,"logprobs":1,"max_tokens":0})");
  EXPECT_EQ(scored["choices"][0]["text"], "ab");
  EXPECT_EQ(scored["choices"][0]["logprobs"]["tokens"], json::array({"<|bos|>", "a", "b"}));
  EXPECT_EQ(scored["choices"][0]["logprobs"]["text_offset"], json::array({0, 0, 1}));
  EXPECT_EQ(scored["usage"]["completion_tokens"], 0);
}

TEST(CompletionCall, streams_text_that_equals_the_whole) {
  FakeSession fake(say(" one two"));
  fake.engine->step_ms = 1;
  std::string joined;
  int num_finishes = 0;
  for (const json& chunk : stream(fake, false, R"({"prompt":"a","stream":true,"echo":true})")) {
    joined += chunk["choices"][0]["text"];
    if (!chunk["choices"][0]["finish_reason"].is_null()) ++num_finishes;
  }
  EXPECT_EQ(joined, "a one two");
  EXPECT_EQ(num_finishes, 1);
}

}  // namespace
}  // namespace dunlin
