
#include <nlohmann/json.hpp>

#include "api/openai_fields.h"

namespace dunlin {
namespace {

using nlohmann::ordered_json;
using IsNeutral = bool (*)(const ordered_json& value);

bool never(const ordered_json&) { return false; }
bool is_false(const ordered_json& value) { return value.is_boolean() && !value.get<bool>(); }
bool is_zero(const ordered_json& value) { return value.is_number() && value.get<double>() == 0; }
bool is_one(const ordered_json& value) { return value.is_number() && value.get<double>() == 1; }
bool up_to_one(const ordered_json& value) { return value.is_number() && value.get<double>() <= 1; }
bool up_to_zero(const ordered_json& value) { return value.is_number() && value.get<double>() <= 0; }
bool is_empty(const ordered_json& value) {
  return (value.is_array() || value.is_object()) ? value.empty() : value.is_string() && value == "";
}
bool is_none_word(const ordered_json& value) { return value == "none"; }
bool is_text_format(const ordered_json& value) {
  const auto type = value.is_object() ? value.find("type") : value.end();
  return value.is_object() && type != value.end() && *type == "text";
}
bool is_text_only(const ordered_json& value) {
  return value.is_array() && value.size() == 1 && value[0] == "text";
}
bool is_true(const ordered_json& value) { return value.is_boolean() && value.get<bool>(); }

struct Unsupported {
  const char* field;
  IsNeutral is_neutral;
};

// Names of OpenAI, vLLM and llama.cpp.
constexpr Unsupported kBoth[] = {
    {"response_format", is_text_format},
    {"grammar", is_empty},
    {"structured_outputs", is_empty},
    {"json_schema", is_empty},
    {"guided_json", is_empty},
    {"guided_regex", is_empty},
    {"guided_choice", is_empty},
    {"guided_grammar", is_empty},
    {"guided_decoding_backend", is_empty},
    {"structural_tag", is_empty},
    {"regex", is_empty},
    {"ebnf", is_empty},
    {"best_of", up_to_one},
    {"use_beam_search", is_false},
    {"length_penalty", is_one},
    {"bad_words", is_empty},
    {"allowed_token_ids", is_empty},
    {"prompt_logprobs", never},
    {"truncate_prompt_tokens", never},
    {"skip_special_tokens", is_true},
    {"stop_regex", is_empty},
    {"logits_processors", is_empty},
    {"prompt_embeds", is_empty},
    {"typical_p", is_one},
    {"mirostat", is_zero},
    {"mirostat_mode", is_zero},
    {"dry_multiplier", is_zero},
    {"xtc_probability", is_zero},
    {"top_n_sigma", up_to_zero},
    {"dynatemp_range", is_zero},
    {"repeat_penalty", is_one},
    {"top_a", is_zero},
    {"tfs_z", is_one},
    {"repetition_detection", is_empty},
    {"lora", is_empty},
    {"lora_path", is_empty},
};
constexpr Unsupported kChat[] = {
    {"tools", is_empty},
    {"tool_choice", is_none_word},
    {"functions", is_empty},
    {"function_call", is_none_word},
    {"modalities", is_text_only},
    {"audio", is_empty},
    {"documents", is_empty},
    {"chat_template", is_empty},
    {"echo", is_false},
    {"continue_final_message", is_false},
    {"web_search_options", never},
};
constexpr Unsupported kCompletion[] = {{"suffix", is_empty}};

}  // namespace

void refuse_unsupported(FieldReader& fields, OpenAiEndpoint endpoint) {
  const auto refuse = [&fields](const Unsupported& row) {
    const ordered_json* value = fields.find(row.field);
    if (value && !row.is_neutral(*value))
      fields.fail(row.field, "is not supported yet; leave it out", "unsupported_parameter");
  };
  for (const Unsupported& row : kBoth) refuse(row);
  if (endpoint == OpenAiEndpoint::kChat) {
    for (const Unsupported& row : kChat) refuse(row);
  } else {
    for (const Unsupported& row : kCompletion) refuse(row);
  }
}

}  // namespace dunlin
