#include "api/openai_parse.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/field_reader.h"
#include "api/json_body.h"
#include "api/openai_fields.h"

namespace dunlin {
namespace {

constexpr int kMaxTokens = std::numeric_limits<int>::max();

// The sampler's own ranges; its messages begin with the field's name.
std::optional<ApiError> check_sampling(const OpenAiRequest& request, const ParseContext& context,
                                       int max_tokens_if_unset) {
  SamplingParams sampling = request.options.sampling;
  if (sampling.max_tokens == 0) sampling.max_tokens = max_tokens_if_unset;
  const Outcome outcome = validate(sampling, context.vocab_size);
  if (outcome) return std::nullopt;
  const std::string& message = outcome.error().message();
  return api_error_from(outcome.error(), message.substr(0, message.find_first_of(" [")));
}

}  // namespace

ParseContext ParseContext::of(Session& session) {
  return {session.config().model_name, session.tokenizer().vocab_size(), session.config().sampling,
          session.engine().limits().hidden_size};
}

ApiResult<ChatRequest> parse_chat_request(std::string_view body, const ParseContext& context) {
  auto json = parse_json_body(body);
  if (!json) return api_fail(std::move(json).error());
  FieldReader fields(**json);
  if (auto model = check_model(fields, context); !model) return api_fail(std::move(model).error());
  ChatRequest request;
  refuse_unsupported(fields, OpenAiEndpoint::kChat);
  read_messages(fields, request);
  read_template_vars(fields, request);
  read_common(fields, context, request);

  SamplingParams& sampling = request.options.sampling;
  // max_completion_tokens is the newer name and wins. -1: to the end of the context.
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    if (!fields.find(name)) continue;
    fields.read(name, sampling.max_tokens, -1, kMaxTokens);
    if (sampling.max_tokens == 0) fields.fail(name, "must be at least 1");
    if (sampling.max_tokens < 0) sampling.max_tokens = 0;
  }

  bool logprobs = false;
  int top_logprobs = 0;
  fields.read("logprobs", logprobs);
  fields.read("top_logprobs", top_logprobs, 0, kMaxTopLogprobs);
  if (top_logprobs > 0 && !logprobs)
    fields.fail("top_logprobs", "is only allowed with logprobs: true");
  if (logprobs) sampling.num_logprobs = top_logprobs;

  if (fields.error()) return api_fail(*fields.error());
  if (auto error = check_sampling(request, context, kMaxTokens)) return api_fail(std::move(*error));
  return request;
}

ApiResult<CompletionRequest> parse_completion_request(std::string_view body,
                                                      const ParseContext& context) {
  auto json = parse_json_body(body);
  if (!json) return api_fail(std::move(json).error());
  FieldReader fields(**json);
  if (auto model = check_model(fields, context); !model) return api_fail(std::move(model).error());
  CompletionRequest request;
  refuse_unsupported(fields, OpenAiEndpoint::kCompletion);
  read_inputs(fields, "prompt", kMaxChoices, context.vocab_size, request.prompts);
  read_common(fields, context, request);
  fields.read("echo", request.echo);

  SamplingParams& sampling = request.options.sampling;
  sampling.max_tokens = 16;  // OpenAI's default here
  fields.read("max_tokens", sampling.max_tokens, -1, kMaxTokens);
  if (sampling.max_tokens == 0) {
    if (!request.echo) fields.fail("max_tokens", "must be at least 1 (0 only with echo: true)");
    request.echo_only = true;
    sampling.max_tokens = 1;  // drawn and dropped
  }
  if (sampling.max_tokens < 0) sampling.max_tokens = 0;

  if (fields.find("logprobs")) fields.read("logprobs", sampling.num_logprobs, 0, kMaxTopLogprobs);
  request.options.echo_logprobs = request.echo && sampling.num_logprobs >= 0;

  const auto num_choices = request.prompts.size() * static_cast<std::size_t>(request.options.n);
  if (num_choices > static_cast<std::size_t>(kMaxChoices))
    fields.fail("n", fmt::format("times the number of prompts gives {} choices; at most {} are "
                                 "taken",
                                 num_choices, kMaxChoices));
  if (fields.error()) return api_fail(*fields.error());
  if (auto error = check_sampling(request, context, kMaxTokens)) return api_fail(std::move(*error));
  return request;
}

}  // namespace dunlin
