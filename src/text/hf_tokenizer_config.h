// tokenizer_config.json and chat_template.jinja of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "text/added_tokens.h"

namespace dunlin {

struct HfTokenizerConfig {
  struct NamedTemplate {
    std::string name;
    std::string source;
  };

  std::optional<std::string> bos_token;  // the token's text
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  std::optional<std::string> unk_token;
  std::optional<bool> add_bos_token;         // where one is stated, both decide in place of
  std::optional<bool> add_eos_token;         // tokenizer.json's post-processor
  std::vector<hf::AddedToken> added_tokens;  // win over tokenizer.json's
  // What the weights have rows for. Added tokens behind are left out: Gemma 3's text models share
  // a tokenizer with an image token that only the others know.
  std::int64_t vocab_size = INT64_MAX;
  std::vector<NamedTemplate> chat_templates;  // a single one is named "default"

  // The template for messages: "tool_use" where tools come along and there is one, else "default",
  // else the only one. nullptr: none.
  const std::string* find_chat_template(bool with_tools) const;

  // `json` is tokenizer_config.json, `chat_template_jinja` the file of that name, which wins over
  // the member chat_template; nullopt: there is no such file. kInvalidArgument names file and
  // place.
  static Result<HfTokenizerConfig> read(std::optional<std::string_view> json,
                                        std::optional<std::string_view> chat_template_jinja);
};

}  // namespace dunlin
