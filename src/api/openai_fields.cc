#include "api/openai_fields.h"
#include "base/quote.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dunlin {
namespace {

using nlohmann::ordered_json;

constexpr int kMaxTokens = std::numeric_limits<int>::max();

std::uint64_t entropy() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

// A token id of the vocabulary, or nullopt with the problem told.
std::optional<TokenId> read_token_id(FieldReader& fields, const std::string& name,
                                     const ordered_json& value, int vocab_size) {
  if (!value.is_number()) {
    fields.fail(name, fmt::format("must be a token id, not {}", json_kind(value)));
    return std::nullopt;
  }
  const auto id = as_integer(value);
  if (!id || *id < 0 || *id >= vocab_size) {
    fields.fail(name, fmt::format("is token id {}, which is out of vocabulary: ids go from 0 to {}",
                                  value.dump(), vocab_size - 1));
    return std::nullopt;
  }
  return static_cast<TokenId>(*id);
}

void add_stop(FieldReader& fields, const std::string& name, const ordered_json& value,
              StopSpec& out) {
  if (!value.is_string())
    return fields.fail(name, fmt::format("must be a string, not {}", json_kind(value)));
  auto text = value.get<std::string>();
  if (text.empty()) return fields.fail(name, "must not be empty");
  if (text.size() > kMaxStopBytes)
    return fields.fail(
        name, fmt::format("has {} bytes; at most {} are taken", text.size(), kMaxStopBytes));
  out.strings.push_back(std::move(text));
}

void read_stop(FieldReader& fields, StopSpec& out) {
  fields.read("include_stop_str_in_output", out.include_in_output);
  const ordered_json* stop = fields.find("stop");
  if (!stop) return;
  if (!stop->is_array()) return add_stop(fields, "stop", *stop, out);
  if (stop->size() > kMaxStopStrings)
    return fields.fail(
        "stop", fmt::format("has {} entries; at most {} are taken", stop->size(), kMaxStopStrings));
  for (std::size_t i = 0; i < stop->size(); ++i)
    add_stop(fields, fmt::format("stop[{}]", i), (*stop)[i], out);
}

void read_stop_token_ids(FieldReader& fields, int vocab_size, std::vector<TokenId>& out) {
  const ordered_json* ids = fields.find("stop_token_ids");
  if (!ids) return;
  if (!ids->is_array())
    return fields.fail("stop_token_ids", fmt::format("must be an array, not {}", json_kind(*ids)));
  if (ids->size() > 128) return fields.fail("stop_token_ids", "has more than 128 entries");
  for (std::size_t i = 0; i < ids->size(); ++i) {
    const auto id =
        read_token_id(fields, fmt::format("stop_token_ids[{}]", i), (*ids)[i], vocab_size);
    if (id) out.push_back(*id);
  }
}

void read_logit_bias(FieldReader& fields, int vocab_size, std::vector<LogitBias>& out) {
  const ordered_json* biases = fields.find("logit_bias");
  if (!biases) return;
  if (!biases->is_object())
    return fields.fail("logit_bias",
                       fmt::format("must be an object of token ids, not {}", json_kind(*biases)));
  for (const auto& [key, value] : biases->items()) {
    TokenId id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= vocab_size)
      return fields.fail("logit_bias", fmt::format("has the key {}, which is no token id from 0 "
                                                   "to {}",
                                                   quote_for_message(key), vocab_size - 1));
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100))
      return fields.fail("logit_bias",
                         fmt::format("of token {} must be a number from -100 to 100", id));
    out.push_back({id, value.get<float>()});
  }
}

void read_stream(FieldReader& fields, OpenAiRequest& out) {
  fields.read("stream", out.stream);
  const ordered_json* options = fields.find("stream_options");
  if (!options) return;
  if (!options->is_object())
    return fields.fail("stream_options",
                       fmt::format("must be an object, not {}", json_kind(*options)));
  if (!out.stream) return fields.fail("stream_options", "is only allowed with stream: true");
  FieldReader inner(*options, "stream_options.");
  inner.read("include_usage", out.include_usage);
  if (inner.error()) fields.adopt(*inner.error());
}

// "20%", where the number may be a share. False: it is none, or not there.
bool read_share(FieldReader& fields, const KvPolicyNumber& number) {
  const ordered_json* value = fields.find(number.name);
  if (number.share == nullptr || value == nullptr || !value->is_string()) return false;
  const auto text = value->get<std::string>();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number.share);
  const bool is_share = error == std::errc() && std::string_view(end) == "%";
  if (!is_share || *number.share < 1 || *number.share > 100)
    fields.fail(number.name, "must be a number of tokens, or a share from \"1%\" to \"100%\"");
  return true;
}

}  // namespace

ApiResult<void> check_model(FieldReader& fields, const ParseContext& context) {
  std::string model;
  fields.read("model", model);
  if (!model.empty() && model != context.model_name) {
    return api_fail({404,
                     fmt::format("the model {} is not served here; '{}' is",
                                 quote_for_message(model), context.model_name),
                     "model", "model_not_found"});
  }
  return {};
}

void read_cache_salt(FieldReader& fields, std::string& out) {
  if (!fields.find("cache_salt")) return;
  fields.read("cache_salt", out);
  if (out.empty()) fields.fail("cache_salt", "must not be empty; leave it out to share the cache");
}

void read_timeouts(FieldReader& fields, std::chrono::milliseconds& queue_timeout,
                   std::chrono::milliseconds& deadline) {
  const auto read = [&](const char* name, std::chrono::milliseconds& out) {
    int ms = 0;
    fields.read(name, ms, 1, kMaxTimeoutMs);
    if (ms > 0) out = std::chrono::milliseconds(ms);
  };
  read("queue_timeout_ms", queue_timeout);
  read("deadline_ms", deadline);
}

void read_kv_policy(FieldReader& fields, std::optional<KvPolicy>& out) {
  const ordered_json* object = fields.find("kv_policy");
  if (!object) return;
  if (!object->is_object())
    return fields.fail("kv_policy", fmt::format("must be an object, not {}", json_kind(*object)));
  std::string type;
  FieldReader inner(*object, "kv_policy.");
  inner.read("type", type);
  KvPolicy policy;
  if (!inner.error() && !parse_kv_policy_type(type, policy.type))
    inner.fail("type", type.empty() ? fmt::format("is missing; it may be {}", kv_policy_names())
                                    : fmt::format("must be {}, not {}", kv_policy_names(),
                                                  quote_for_message(type)));
  const auto numbers = numbers_of(policy);
  for (const auto& [name, value] : object->items()) {
    const bool is_known = name == "type" || std::ranges::any_of(numbers, [&](const auto& number) {
                            return name == number.name;
                          });
    if (!is_known)
      inner.fail(name, fmt::format("is not known of the policy {}", quote_for_message(type)));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const KvPolicyNumber number = numbers_of(policy)[i];
    if (read_share(inner, number)) continue;
    inner.read(number.name, *number.value, number.min, number.max);
    if ((*number.value - number.min) % number.unit != 0)
      inner.fail(number.name, fmt::format("must be {}", range_of(number)));
  }
  if (inner.error()) return fields.adopt(*inner.error());
  out = policy;
}

void read_common(FieldReader& fields, const ParseContext& context, OpenAiRequest& out) {
  SamplingParams& sampling = out.options.sampling;
  sampling = context.sampling;
  read_stream(fields, out);
  fields.read("temperature", sampling.temperature);
  int top_k = sampling.top_k;
  fields.read("top_k", top_k, -1, kMaxTokens);
  sampling.top_k = top_k < 0 ? 0 : top_k;  // vLLM's -1 is off, too
  fields.read("top_p", sampling.top_p);
  fields.read("min_p", sampling.min_p);
  fields.read("repetition_penalty", sampling.repetition_penalty);
  fields.read("presence_penalty", sampling.presence_penalty);
  fields.read("frequency_penalty", sampling.frequency_penalty);
  fields.read("min_tokens", sampling.min_tokens, 0, kMaxTokens);
  fields.read("ignore_eos", sampling.ignore_eos);
  if (fields.find("seed")) {
    fields.read("seed", sampling.seed);
  } else {
    sampling.seed = entropy();
  }
  fields.read("n", out.options.n, 1, kMaxChoices);
  read_cache_salt(fields, out.options.cache_salt);
  read_kv_policy(fields, out.options.kv_policy);
  read_timeouts(fields, out.options.queue_timeout, out.options.deadline);
  fields.read("priority", out.options.priority, std::numeric_limits<int>::min(), kMaxTokens);
  read_stop(fields, out.options.stop);
  read_stop_token_ids(fields, context.vocab_size, sampling.stop_token_ids);
  read_logit_bias(fields, context.vocab_size, sampling.logit_bias);
}

void read_inputs(FieldReader& fields, const char* name, std::size_t max_inputs, int vocab_size,
                 std::vector<PromptInput>& out) {
  const ordered_json* value = fields.find(name);
  if (!value) return fields.fail(name, "is missing");
  const auto read_ids = [&](const std::string& place, const ordered_json& list) {
    PromptInput input;
    input.is_ids = true;
    input.ids.reserve(list.size());
    for (std::size_t i = 0; i < list.size() && !fields.error(); ++i) {
      const auto id = read_token_id(fields, fmt::format("{}[{}]", place, i), list[i], vocab_size);
      if (id) input.ids.push_back(*id);
    }
    out.push_back(std::move(input));
  };
  if (value->is_string()) {
    out.push_back({value->get<std::string>(), {}, false});
    return;
  }
  if (!value->is_array()) {
    return fields.fail(name, fmt::format("must be a string, an array of strings, token ids or "
                                         "arrays of token ids, not {}",
                                         json_kind(*value)));
  }
  if (value->empty()) return fields.fail(name, "is empty");
  if ((*value)[0].is_number()) return read_ids(name, *value);
  if (value->size() > max_inputs)
    return fields.fail(
        name, fmt::format("has {} entries; at most {} are taken", value->size(), max_inputs));
  for (std::size_t i = 0; i < value->size(); ++i) {
    const ordered_json& entry = (*value)[i];
    const std::string place = fmt::format("{}[{}]", name, i);
    if (entry.is_string()) {
      out.push_back({entry.get<std::string>(), {}, false});
    } else if (entry.is_array() && !entry.empty()) {
      read_ids(place, entry);
    } else {
      return fields.fail(
          place, entry.is_array() ? std::string("is empty")
                                  : fmt::format("must be a string or an array of token ids, not {}",
                                                json_kind(entry)));
    }
  }
}

}  // namespace dunlin
