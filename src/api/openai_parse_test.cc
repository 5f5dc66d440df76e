#include "api/openai_parse.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/json_body.h"

namespace dunlin {
namespace {

using nlohmann::ordered_json;

const ParseContext kContext{"M", 1000};

ApiResult<ChatRequest> chat(const std::string& fields) {
  return parse_chat_request(
      R"({"model":"M","messages":[{"role":"user","content":"hi"}])" + fields + "}", kContext);
}
ApiResult<CompletionRequest> completion(const std::string& fields) {
  return parse_completion_request(R"({"model":"M")" + fields + "}", kContext);
}

template <typename T>
void expect_error(const ApiResult<T>& result, const std::string& param, int status = 400) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().http_status, status);
  EXPECT_EQ(result.error().param, param) << result.error().message;
}

TEST(ChatParse, takes_every_field_it_knows) {
  const auto request = chat(
      R"(,"temperature":0.5,"top_k":40,"top_p":0.9,"min_p":0.1,"repetition_penalty":1.1,
      "presence_penalty":-1,"frequency_penalty":1.5,"logit_bias":{"7":-100},"seed":-3,"n":2,
      "stop":["a","b"],"stop_token_ids":[9],"include_stop_str_in_output":true,"max_tokens":50,
      "min_tokens":2,"ignore_eos":true,"logprobs":true,"top_logprobs":3,"stream":true,
      "stream_options":{"include_usage":true},"priority":-1,"cache_salt":"s","deadline_ms":5000,
      "queue_timeout_ms":20)");
  ASSERT_TRUE(request) << request.error().message;
  const SamplingParams& sampling = request->options.sampling;
  EXPECT_FLOAT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_FLOAT_EQ(sampling.frequency_penalty, 1.5f);
  ASSERT_EQ(sampling.logit_bias.size(), 1u);
  EXPECT_EQ(sampling.logit_bias[0].token, 7);
  EXPECT_EQ(sampling.seed, static_cast<std::uint64_t>(-3));
  EXPECT_EQ(sampling.stop_token_ids, std::vector<TokenId>{9});
  EXPECT_EQ(sampling.max_tokens, 50);
  EXPECT_EQ(sampling.num_logprobs, 3);
  EXPECT_EQ(request->options.n, 2);
  EXPECT_EQ(request->options.priority, -1);
  EXPECT_EQ(request->options.cache_salt, "s");
  EXPECT_EQ(request->options.deadline, std::chrono::milliseconds(5000));
  EXPECT_EQ(request->options.queue_timeout, std::chrono::milliseconds(20));
  EXPECT_EQ(request->options.stop.strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request->options.stop.include_in_output);
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
}

TEST(ChatParse, reads_null_as_absent) {
  for (const char* field : {"temperature",
                            "top_p",
                            "n",
                            "stop",
                            "max_tokens",
                            "seed",
                            "stream",
                            "tools",
                            "tool_choice",
                            "logit_bias",
                            "user",
                            "response_format",
                            "logprobs",
                            "top_logprobs",
                            "presence_penalty",
                            "frequency_penalty",
                            "stream_options",
                            "max_completion_tokens",
                            "functions",
                            "grammar"}) {
    EXPECT_TRUE(chat(std::string(",\"") + field + "\":null")) << field;
  }
}

TEST(ChatParse, ignores_fields_it_does_not_know) {
  EXPECT_TRUE(chat(R"(,"user":"me","metadata":{"a":[1]},"store":false,"zzz":1)"));
}

TEST(ChatParse, names_the_field_of_a_wrong_type_or_range) {
  expect_error(chat(R"(,"temperature":"hot")"), "temperature");
  expect_error(chat(R"(,"temperature":-1)"), "temperature");
  expect_error(chat(R"(,"top_p":1.1)"), "top_p");
  expect_error(chat(R"(,"top_p":-0.1)"), "top_p");
  expect_error(chat(R"(,"top_p":"1")"), "top_p");
  expect_error(chat(R"(,"top_k":1.5)"), "top_k");
  expect_error(chat(R"(,"n":0)"), "n");
  expect_error(chat(R"(,"n":1000)"), "n");
  expect_error(chat(R"(,"seed":1.5)"), "seed");
  expect_error(chat(R"(,"stream":1)"), "stream");
  expect_error(chat(R"(,"max_tokens":0)"), "max_tokens");
  expect_error(chat(R"(,"max_tokens":"5")"), "max_tokens");
  expect_error(chat(R"(,"max_tokens":99999999999)"), "max_tokens");
  expect_error(chat(R"(,"stop":"")"), "stop");
  expect_error(chat(R"(,"stop":["zzz",""])"), "stop[1]");
  expect_error(chat(R"(,"stop":5)"), "stop");
  expect_error(chat(R"(,"logit_bias":{"x":1})"), "logit_bias");
  expect_error(chat(R"(,"logit_bias":{"1000":1})"), "logit_bias");
  expect_error(chat(R"(,"logit_bias":{"5":101})"), "logit_bias");
  expect_error(chat(R"(,"logit_bias":[])"), "logit_bias");
  expect_error(chat(R"(,"top_logprobs":3)"), "top_logprobs");
  expect_error(chat(R"(,"logprobs":true,"top_logprobs":21)"), "top_logprobs");
  expect_error(chat(R"(,"stream_options":{"include_usage":true})"), "stream_options");
  expect_error(chat(R"(,"stream":true,"stream_options":{"include_usage":3})"),
               "stream_options.include_usage");
  expect_error(chat(R"(,"priority":"high")"), "priority");
  expect_error(chat(R"(,"cache_salt":5)"), "cache_salt");
  expect_error(chat(R"(,"cache_salt":"")"), "cache_salt");
  expect_error(chat(R"(,"kv_policy":"window")"), "kv_policy");
  expect_error(chat(R"(,"kv_policy":{})"), "kv_policy.type");
  expect_error(chat(R"(,"kv_policy":{"type":"best"})"), "kv_policy.type");
  expect_error(chat(R"(,"kv_policy":{"type":5})"), "kv_policy.type");
  expect_error(chat(R"(,"kv_policy":{"type":"window","sinks":-1})"), "kv_policy.sinks");
  expect_error(chat(R"(,"kv_policy":{"type":"window","window":100})"), "kv_policy.window");
  expect_error(chat(R"(,"kv_policy":{"type":"window","window":"8"})"), "kv_policy.window");
  expect_error(chat(R"(,"kv_policy":{"type":"window","budget":8})"), "kv_policy.budget");
  expect_error(chat(R"(,"kv_policy":{"type":"full","sinks":4})"), "kv_policy.sinks");
  expect_error(chat(R"(,"kv_policy":{"type":"h2o","budget":24})"), "kv_policy.budget");
  for (const char* share : {"", "20", "0%", "101%", "x%", "20%%", "-1%", "99999999999%"})
    expect_error(chat(R"(,"kv_policy":{"type":"h2o","budget":")" + std::string(share) + R"("})"),
                 "kv_policy.budget");
  expect_error(chat(R"(,"kv_policy":{"type":"quest","budget":"20%"})"), "kv_policy.budget");
  expect_error(chat(R"(,"kv_policy":{"type":"h2o","budget":64,"recent":64})"), "kv_policy.recent");
  expect_error(chat(R"(,"kv_policy":{"type":"h2o","budget":64,"recent":"50%"})"),
               "kv_policy.recent");
  expect_error(chat(R"(,"kv_policy":{"type":"snapkv","window":40})"), "kv_policy.window");
  expect_error(chat(R"(,"kv_policy":{"type":"snapkv","budget":32,"window":32})"),
               "kv_policy.window");
  expect_error(chat(R"(,"kv_policy":{"type":"snapkv","pool":4})"), "kv_policy.pool");
  expect_error(chat(R"(,"kv_policy":{"type":"snapkv","recent":16})"), "kv_policy.recent");
  expect_error(chat(R"(,"deadline_ms":0)"), "deadline_ms");
  expect_error(chat(R"(,"deadline_ms":604800001)"), "deadline_ms");
  expect_error(chat(R"(,"queue_timeout_ms":"soon")"), "queue_timeout_ms");
}

TEST(ChatParse, reads_the_kv_policy) {
  EXPECT_FALSE(chat("")->options.kv_policy);
  EXPECT_EQ(chat(R"(,"kv_policy":{"type":"full"})")->options.kv_policy, KvPolicy{});
  const KvPolicy wanted{KvPolicyType::kWindow, 8, 256};
  EXPECT_EQ(chat(R"(,"kv_policy":{"type":"window","sinks":8,"window":256})")->options.kv_policy,
            wanted);
  EXPECT_EQ(chat(R"(,"kv_policy":{"type":"window"})")->options.kv_policy,
            (KvPolicy{.type = KvPolicyType::kWindow}));
  EXPECT_EQ(chat(R"(,"kv_policy":{"type":"h2o","recent":512,"budget":1024})")->options.kv_policy,
            (KvPolicy{.type = KvPolicyType::kH2o, .budget = 1024, .recent = 512}));
  EXPECT_EQ(chat(R"(,"kv_policy":{"type":"h2o","budget":"20%"})")->options.kv_policy,
            (KvPolicy{.type = KvPolicyType::kH2o, .share = 20}));
  EXPECT_EQ(chat(R"(,"kv_policy":{"type":"snapkv","window":64,"pool":5})")->options.kv_policy,
            (KvPolicy{.type = KvPolicyType::kSnapKv, .observed = 64, .pool = 5}));
}

TEST(ChatParse, takes_the_newer_name_of_max_tokens_and_minus_one_for_no_limit) {
  EXPECT_EQ(chat(R"(,"max_completion_tokens":5,"max_tokens":9)")->options.sampling.max_tokens, 5);
  EXPECT_EQ(chat(R"(,"max_tokens":-1)")->options.sampling.max_tokens, 0);
  EXPECT_EQ(chat("")->options.sampling.max_tokens, 0);
}

TEST(ChatParse, draws_a_seed_where_none_is_given) {
  EXPECT_NE(chat("")->options.sampling.seed, chat("")->options.sampling.seed);
}

TEST(ChatParse, refuses_what_is_not_there_yet_by_name) {
  for (const char* field :
       {R"("response_format":{"type":"json_object"})", R"("tools":[{"type":"function"}])",
        R"("tool_choice":"auto")", R"("functions":[{}])", R"("grammar":"root ::= \"a\"")",
        R"("structured_outputs":{"regex":"a"})", R"("guided_json":{"type":"object"})",
        R"("best_of":2)", R"("use_beam_search":true)", R"("bad_words":["x"])",
        R"("documents":[{}])", R"("echo":true)"}) {
    const auto request = chat(std::string(",") + field);
    ASSERT_FALSE(request) << field;
    EXPECT_EQ(request.error().http_status, 400);
    EXPECT_NE(request.error().message.find("not supported yet"), std::string::npos) << field;
    EXPECT_FALSE(request.error().param.empty());
  }
  EXPECT_TRUE(
      chat(R"(,"response_format":{"type":"text"},"tools":[],"tool_choice":"none","best_of":1)"));
}

TEST(ChatParse, refuses_another_models_name_with_404) {
  const auto request = parse_chat_request(R"({"model":"gpt-x","messages":[]})", kContext);
  expect_error(request, "model", 404);
  EXPECT_EQ(request.error().code, "model_not_found");
}

ApiResult<ChatRequest> messages(const std::string& list) {
  return parse_chat_request(R"({"messages":)" + list + "}", kContext);
}

TEST(ChatParse, joins_text_parts_and_refuses_others) {
  const auto request = messages(
      R"([{"role":"developer","content":"d"},{"role":"user","content":[{"type":"text","text":"a"},
      {"type":"text","text":"b"}]},{"role":"assistant","content":null}])");
  ASSERT_TRUE(request) << request.error().message;
  const ordered_json& list = *request->messages;
  EXPECT_EQ(list[0]["role"], "system");
  EXPECT_EQ(list[1]["content"], "a\nb");
  EXPECT_EQ(list[2]["content"], "");
  expect_error(messages(R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])"),
               "messages[0].content[0]");
  expect_error(messages(R"([{"role":"user","content":["x"]}])"), "messages[0].content[0]");
  expect_error(messages(R"([{"role":"user","content":5}])"), "messages[0].content");
  expect_error(messages(R"([{"role":"user"}])"), "messages[0].content");
  expect_error(messages(R"([{"role":"user","content":"a"},{"role":"robot","content":"x"}])"),
               "messages[1].role");
  expect_error(messages(R"([{"content":"x"}])"), "messages[0].role");
  expect_error(messages(R"(["x"])"), "messages[0]");
  expect_error(messages("[]"), "messages");
  expect_error(messages("\"hi\""), "messages");
  expect_error(messages(R"([{"role":"assistant","content":"","tool_calls":[{}]}])"),
               "messages[0].tool_calls");
}

TEST(ChatParse, keeps_text_behind_a_nul) {
  const auto request = messages(R"([{"role":"user","content":"a\u0000b"}])");
  EXPECT_EQ((*request->messages)[0]["content"].get<std::string>(), std::string("a\0b", 3));
}

TEST(ChatParse, lets_template_variables_be_words_only) {
  const auto with = [](const std::string& kwargs) {
    return chat(",\"chat_template_kwargs\":" + kwargs);
  };
  EXPECT_EQ((*with(R"({"enable_thinking":false})")->template_vars)["enable_thinking"], false);
  expect_error(with(R"({"x":"<|im_start|>system"})"), "chat_template_kwargs");
  expect_error(with(R"({"messages":1})"), "chat_template_kwargs");
  expect_error(with(R"({"x":[1]})"), "chat_template_kwargs");
}

TEST(CompletionParse, takes_the_four_forms_of_a_prompt) {
  EXPECT_EQ(completion(R"(,"prompt":"hi")")->prompts[0].text, "hi");
  EXPECT_EQ(completion(R"(,"prompt":["a","b"])")->prompts.size(), 2u);
  EXPECT_EQ(completion(R"(,"prompt":[1,2])")->prompts[0].ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(completion(R"(,"prompt":[[1],[2,3]])")->prompts[1].ids, (std::vector<TokenId>{2, 3}));
  EXPECT_EQ(completion(R"(,"prompt":"hi")")->options.sampling.max_tokens, 16);
}

TEST(CompletionParse, refuses_prompts_that_are_none) {
  expect_error(completion(""), "prompt");
  expect_error(completion(R"(,"prompt":[])"), "prompt");
  expect_error(completion(R"(,"prompt":{})"), "prompt");
  expect_error(completion(R"(,"prompt":[[]])"), "prompt[0]");
  expect_error(completion(R"(,"prompt":[1,"a"])"), "prompt[1]");
  expect_error(completion(R"(,"prompt":["a",1])"), "prompt[1]");
  expect_error(completion(R"(,"prompt":"a","suffix":"b")"), "suffix");
  expect_error(completion(R"(,"prompt":["a","b"],"n":100)"), "n");
}

TEST(CompletionParse, says_that_ids_are_out_of_vocabulary) {
  for (const char* prompt :
       {"[-1]", "[[-1]]", "[0,999999999]", "[99999999999999999999]", "[1.5]"}) {
    const auto request = completion(std::string(",\"prompt\":") + prompt);
    ASSERT_FALSE(request) << prompt;
    EXPECT_NE(request.error().message.find("out of vocabulary"), std::string::npos);
  }
}

TEST(CompletionParse, allows_no_tokens_with_echo_only) {
  expect_error(completion(R"(,"prompt":"a","max_tokens":0)"), "max_tokens");
  const auto request = completion(R"(,"prompt":"a","max_tokens":0,"echo":true,"logprobs":0)");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->echo_only);
  EXPECT_TRUE(request->options.echo_logprobs);
}

TEST(JsonBody, says_where_it_stops_being_json) {
  EXPECT_NE(parse_json_body("{\"a\":").error().message.find("byte 6"), std::string::npos);
  EXPECT_FALSE(parse_json_body(""));
  EXPECT_FALSE(parse_json_body("[1]"));
  EXPECT_FALSE(parse_json_body("{\"a\":\"\xFF\"}"));
  EXPECT_FALSE(parse_json_body("{\"a\":1e999}"));
  EXPECT_TRUE(parse_json_body(R"({"a":1,"a":2})"));
}

TEST(JsonBody, refuses_depth_and_numbers_of_keys_before_parsing) {
  EXPECT_FALSE(parse_json_body(std::string(200'000, '[')));
  EXPECT_FALSE(parse_json_body("{\"a\":" + std::string(101, '[') + std::string(101, ']') + "}"));
  std::string wide = "{";
  for (int i = 0; i < 5000; ++i) wide += "\"k" + std::to_string(i) + "\":1,";
  wide.back() = '}';
  EXPECT_NE(parse_json_body(wide).error().message.find("keys"), std::string::npos);
  EXPECT_TRUE(parse_json_body("{\"a\":\"" + std::string(1000, '[') + "\"}"));
}

TEST(Errors, are_valid_json_whatever_they_quote) {
  const std::string body = error_body({400, "bad \xFF\xC3 \"key\"\n", "p\xE2\x28", ""});
  const auto json = nlohmann::json::parse(body);
  EXPECT_EQ(json["error"]["type"], "invalid_request_error");
  EXPECT_TRUE(json["error"]["code"].is_null());
}

TEST(Errors, have_one_status_each) {
  EXPECT_EQ(http_status_of(StatusCode::kInvalidArgument), 400);
  EXPECT_EQ(http_status_of(StatusCode::kNotFound), 404);
  EXPECT_EQ(http_status_of(StatusCode::kResourceExhausted), 429);
  EXPECT_EQ(http_status_of(StatusCode::kUnavailable), 503);
  EXPECT_EQ(http_status_of(StatusCode::kInternal), 500);
}

TEST(Cases, raw_bodies_that_must_be_refused_are) {
  for (const char* name :
       {"a2_deep_body", "a3_bad_key_echo", "a3_bad_utf8", "a3_empty", "a3_truncated"}) {
    std::ifstream file(std::string(DUNLIN_TESTS_DIR) + "/cases/raw/" + name + ".body",
                       std::ios::binary);
    ASSERT_TRUE(file) << name;
    std::ostringstream bytes;
    bytes << file.rdbuf();
    const auto request = parse_chat_request(bytes.str(), kContext);
    ASSERT_FALSE(request) << name;
    EXPECT_EQ(request.error().http_status, 400) << name;
    EXPECT_TRUE(nlohmann::json::accept(error_body(request.error()))) << name;
  }
}

}  // namespace
}  // namespace dunlin
