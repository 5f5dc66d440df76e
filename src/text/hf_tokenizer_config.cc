#include "text/hf_tokenizer_config.h"

#include <charconv>

#include "text/hf_file.h"
#include "text/json_view.h"

namespace dunlin {
namespace {

using hf::JsonView;

constexpr std::size_t kMaxTemplateBytes = 4 << 20;  // before it is copied; fewer can be parsed

// A text, or an object with the text as its content.
Result<std::optional<std::string>> read_token(const JsonView& config, std::string_view key) {
  if (!config.has(key)) return std::nullopt;
  if (config.value()[std::string(key)].is_string()) {
    DUNLIN_ASSIGN(text, config.string(key));
    return text;
  }
  DUNLIN_ASSIGN(token, config.object(key));
  DUNLIN_ASSIGN(content, token.string("content"));
  return content;
}

Result<std::optional<bool>> read_flag(const JsonView& config, std::string_view key) {
  if (!config.has(key)) return std::nullopt;
  DUNLIN_ASSIGN(flag, config.boolean_or(key, false));
  return flag;
}

Outcome read_added_tokens(const JsonView& config, HfTokenizerConfig& out) {
  if (!config.has("added_tokens_decoder")) return {};
  DUNLIN_ASSIGN(by_id, config.object("added_tokens_decoder"));
  for (const auto& [key, value] : by_id.value().items()) {
    const JsonView view(value, fmt::format("{}.{}", by_id.path(), key));
    TokenId id = -1;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || id < 0 ||
        id > hf::kMaxTokenId) {
      return view.error(fmt::format("the key must be an id from 0 to {}", hf::kMaxTokenId));
    }
    DUNLIN_ASSIGN(token, hf::read_added_token(view, id));
    out.added_tokens.push_back(std::move(token));
  }
  return {};
}

Outcome read_templates(const JsonView& config, HfTokenizerConfig& out) {
  if (!config.has("chat_template")) return {};
  if (config.value()["chat_template"].is_string()) {
    DUNLIN_ASSIGN(source, config.string("chat_template"));
    out.chat_templates.push_back({"default", std::move(source)});
    return {};
  }
  DUNLIN_ASSIGN(list, config.array("chat_template"));
  for (const JsonView& entry : list) {
    DUNLIN_ASSIGN(name, entry.string("name"));
    DUNLIN_ASSIGN(source, entry.string("template"));
    out.chat_templates.push_back({std::move(name), std::move(source)});
  }
  return {};
}

}  // namespace

const std::string* HfTokenizerConfig::find_chat_template(bool with_tools) const {
  const auto find = [&](std::string_view name) -> const std::string* {
    for (const NamedTemplate& entry : chat_templates) {
      if (entry.name == name) return &entry.source;
    }
    return nullptr;
  };
  if (with_tools) {
    if (const std::string* found = find("tool_use")) return found;
  }
  if (const std::string* found = find("default")) return found;
  return chat_templates.size() == 1 ? &chat_templates[0].source : nullptr;
}

Result<HfTokenizerConfig> HfTokenizerConfig::read(
    std::optional<std::string_view> json, std::optional<std::string_view> chat_template_jinja) {
  HfTokenizerConfig out;
  if (json) {
    auto parsed = hf::parse_json_object(*json);
    if (!parsed) return tl::unexpected(parsed.error().with_prefix("tokenizer_config.json"));
    const JsonView config(*parsed, "tokenizer_config.json");
    DUNLIN_ASSIGN(bos, read_token(config, "bos_token"));
    DUNLIN_ASSIGN(eos, read_token(config, "eos_token"));
    DUNLIN_ASSIGN(pad, read_token(config, "pad_token"));
    DUNLIN_ASSIGN(unk, read_token(config, "unk_token"));
    DUNLIN_ASSIGN(add_bos, read_flag(config, "add_bos_token"));
    DUNLIN_ASSIGN(add_eos, read_flag(config, "add_eos_token"));
    out.bos_token = std::move(bos);
    out.eos_token = std::move(eos);
    out.pad_token = std::move(pad);
    out.unk_token = std::move(unk);
    out.add_bos_token = add_bos;
    out.add_eos_token = add_eos;
    DUNLIN_TRY(read_added_tokens(config, out));
    DUNLIN_TRY(read_templates(config, out));
  }
  if (chat_template_jinja) {
    if (chat_template_jinja->size() > kMaxTemplateBytes) {
      return invalid(fmt::format("chat_template.jinja: has {} bytes; at most {} are read",
                                 chat_template_jinja->size(), kMaxTemplateBytes));
    }
    out.chat_templates = {{"default", std::string(*chat_template_jinja)}};
  }
  return out;
}

}  // namespace dunlin
