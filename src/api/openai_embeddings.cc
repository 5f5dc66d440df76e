#include "api/openai_embeddings.h"

#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/field_reader.h"
#include "api/json_body.h"
#include "api/openai_fields.h"
#include "base/base64.h"
#include "base/quote.h"

namespace dunlin {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

void check_inputs(FieldReader& fields, const std::vector<PromptInput>& inputs) {
  const nlohmann::ordered_json* value = fields.find("input");
  const bool is_list =
      value != nullptr && value->is_array() && !value->empty() && !value->front().is_number();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!(inputs[i].is_ids ? inputs[i].ids.empty() : inputs[i].text.empty())) continue;
    return fields.fail(is_list ? fmt::format("input[{}]", i) : "input", "is empty");
  }
}

void read_pooling(FieldReader& fields, Pooling& out) {
  std::string word;
  fields.read("pooling", word);
  if (word.empty()) return;
  const auto pooling = parse_pooling(word);
  if (!pooling)
    return fields.fail("pooling", fmt::format("must be \"mean\", \"cls\" or \"last\", not {}",
                                              quote_for_message(word)));
  out = *pooling;
}

void append_numbers(const std::vector<float>& values, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", values[i]);
  out += ']';
}

}  // namespace

ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body,
                                                    const ParseContext& context) {
  auto json = parse_json_body(body);
  if (!json) return api_fail(std::move(json).error());
  FieldReader fields(**json);
  if (auto model = check_model(fields, context); !model) return api_fail(std::move(model).error());
  EmbeddingRequest request;
  read_inputs(fields, "input", kMaxEmbeddingInputs, context.vocab_size, request.inputs);
  check_inputs(fields, request.inputs);
  std::string encoding = "float";
  fields.read("encoding_format", encoding);
  request.base64 = encoding == "base64";
  if (!request.base64 && encoding != "float")
    fields.fail("encoding_format", fmt::format("must be \"float\" or \"base64\", not {}",
                                               quote_for_message(encoding)));
  EmbeddingOptions& options = request.options;
  if (fields.find("dimensions")) fields.read("dimensions", options.dimensions, 1, kMaxInt);
  if (options.dimensions > context.hidden_size)
    fields.fail("dimensions", fmt::format("is {}, but the model's embeddings have {}",
                                          options.dimensions, context.hidden_size));
  read_pooling(fields, options.pooling);
  fields.read("normalize", options.normalize);
  fields.read("priority", options.priority, std::numeric_limits<int>::min(), kMaxInt);
  read_cache_salt(fields, options.cache_salt);
  read_timeouts(fields, options.queue_timeout, options.deadline);
  fields.read("add_special_tokens", request.add_special_tokens);
  fields.read("truncate_prompt_tokens", request.truncate_to, EmbeddingRequest::kToContext, kMaxInt);
  if (fields.find("truncate_prompt_tokens") && request.truncate_to == 0)
    fields.fail("truncate_prompt_tokens", "must be at least 1, or -1 for what the context holds");
  if (fields.error()) return api_fail(*fields.error());
  return request;
}

std::string format_embeddings(const std::string& model,
                              std::span<const std::vector<float>> embeddings, bool base64,
                              std::int64_t num_prompt_tokens) {
  std::string out = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    fmt::format_to(std::back_inserter(out), R"({}{{"object":"embedding","index":{},"embedding":)",
                   i == 0 ? "" : ",", i);
    if (base64)
      out += '"' + dunlin::base64(std::as_bytes(std::span(embeddings[i]))) + '"';
    else
      append_numbers(embeddings[i], out);
    out += '}';
  }
  using nlohmann::ordered_json;
  fmt::format_to(std::back_inserter(out),
                 R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                 ordered_json(model).dump(-1, ' ', false, ordered_json::error_handler_t::replace),
                 num_prompt_tokens, num_prompt_tokens);
  return out;
}

}  // namespace dunlin
