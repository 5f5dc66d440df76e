#include "frontend/model_text.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "text/hf_tokenizer.h"
#include "text/tokenizer_factory.h"
#include "text/vocab.h"

namespace dunlin {
namespace {

namespace fs = std::filesystem;

Result<std::unique_ptr<ChatTemplate>> parse_template(std::string_view source,
                                                     const std::string& given,
                                                     const std::string& path) {
  auto parsed = ChatTemplate::parse(given.empty() ? source : std::string_view(given));
  if (!parsed) {
    return tl::unexpected(parsed.error().with_prefix(
        given.empty()
            ? path + ": the chat template can't be used (give another with --chat-template)"
            : std::string("--chat-template")));
  }
  return std::make_unique<ChatTemplate>(std::move(*parsed));
}

// A file of the folder; nullopt where there is none.
Result<std::optional<MappedFile>> find_file(const std::string& folder, std::string_view name) {
  const std::string path = folder + "/" + std::string(name);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::optional<MappedFile>();
  DUNLIN_ASSIGN(file, MappedFile::open(path));
  return std::optional<MappedFile>(std::move(file));
}

std::optional<std::string_view> text_of(const std::optional<MappedFile>& file) {
  if (!file) return std::nullopt;
  const std::span<const std::byte> bytes = file->bytes();
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// eos_token_id is a number or a list of them.
void add_eos_ids(const HfConfig& config, std::vector<TokenId>& ids) {
  if (!config.has("eos_token_id")) return;
  std::vector<std::int64_t> found;
  if (config.is_array("eos_token_id"))
    found = config.integers("eos_token_id");
  else
    found = {config.integer("eos_token_id")};
  for (const std::int64_t id : found)
    if (id >= 0 && id <= INT32_MAX) ids.push_back(static_cast<TokenId>(id));
}

void read_sampling(const HfConfig& config, ModelText& text) {
  SamplingParams& sampling = text.sampling;
  const auto number = [&](std::string_view key, float& value) {
    if (!config.has(key)) return;
    value = static_cast<float>(config.number(key));
    text.recommends_sampling = true;
  };
  number("temperature", sampling.temperature);
  number("top_p", sampling.top_p);
  number("min_p", sampling.min_p);
  number("repetition_penalty", sampling.repetition_penalty);
  if (config.has("top_k")) {
    const std::int64_t top_k = config.integer("top_k");
    sampling.top_k = top_k > 0 && top_k < INT32_MAX ? static_cast<int>(top_k) : 0;
    text.recommends_sampling = true;
  }
}

// What generation_config.json and config.json say: where a text ends, how to draw.
Outcome read_generation(const std::string& folder, ModelText& text, std::vector<TokenId>& eos_ids) {
  for (const std::string_view name : {"generation_config.json", "config.json"}) {
    DUNLIN_ASSIGN(file, find_file(folder, name));
    if (!file) continue;
    DUNLIN_ASSIGN(config, HfConfig::parse(*text_of(file), file->path()));
    add_eos_ids(config, eos_ids);
    if (name == "generation_config.json") read_sampling(config, text);
    DUNLIN_TRY(config.outcome());
  }
  constexpr int kAnyVocabulary = INT32_MAX;
  const Outcome valid = validate(text.sampling, kAnyVocabulary);
  if (valid) return {};
  return tl::unexpected<Status>(valid.error().with_prefix(folder + "/generation_config.json"));
}

Outcome read_tokenizer(const std::string& folder, const HfTokenizerConfig& config,
                       const std::vector<TokenId>& eos_ids, ModelText& text) {
  DUNLIN_ASSIGN(file, find_file(folder, "tokenizer.json"));
  if (!file) {
    return fail(StatusCode::kNotFound,
                folder + ": has no tokenizer.json, the only kind of vocabulary read from folders");
  }
  auto tokenizer = make_hf_tokenizer(*text_of(file), config, eos_ids);
  if (!tokenizer) return tl::unexpected<Status>(tokenizer.error().with_prefix(folder));
  text.tokenizer = std::move(*tokenizer);
  return {};
}

Result<HfTokenizerConfig> read_tokenizer_config(const std::string& folder) {
  DUNLIN_ASSIGN(file, find_file(folder, "tokenizer_config.json"));
  DUNLIN_ASSIGN(jinja, find_file(folder, "chat_template.jinja"));
  auto config = HfTokenizerConfig::read(text_of(file), text_of(jinja));
  if (!config) return tl::unexpected<Status>(config.error().with_prefix(folder));
  return config;
}

}  // namespace

Result<ModelText> read_model_text(const GgufFile& file, const std::string& given_template) {
  ModelText text;
  DUNLIN_ASSIGN(tokenizer, make_tokenizer(file));
  text.tokenizer = std::move(tokenizer);
  DUNLIN_ASSIGN(stored, file.get_string("tokenizer.chat_template", ""));
  if (stored.empty() && given_template.empty()) return text;
  DUNLIN_ASSIGN(parsed, parse_template(stored, given_template, file.path()));
  text.chat_template = std::move(parsed);
  return text;
}

Result<ModelText> read_model_text(const std::string& folder, const std::string& given_template) {
  ModelText text;
  std::vector<TokenId> eos_ids;
  DUNLIN_TRY(read_generation(folder, text, eos_ids));
  DUNLIN_ASSIGN(config, read_tokenizer_config(folder));
  DUNLIN_TRY(read_tokenizer(folder, config, eos_ids, text));
  const std::string* plain = config.find_chat_template(false);
  const std::string* tools = config.find_chat_template(true);
  if (plain != nullptr || !given_template.empty()) {
    DUNLIN_ASSIGN(parsed, parse_template(plain != nullptr ? *plain : "", given_template, folder));
    text.chat_template = std::move(parsed);
  }
  if (tools != plain && given_template.empty()) {
    DUNLIN_ASSIGN(parsed, parse_template(*tools, "", folder));
    text.tool_template = std::move(parsed);
  }
  return text;
}

Result<GgufVocabulary> read_gguf_vocabulary(const std::string& folder, int vocab_size) {
  ModelText text;
  std::vector<TokenId> eos_ids;
  DUNLIN_TRY(read_generation(folder, text, eos_ids));
  DUNLIN_ASSIGN(config, read_tokenizer_config(folder));
  DUNLIN_TRY(read_tokenizer(folder, config, eos_ids, text));
  DUNLIN_ASSIGN(file, find_file(folder, "tokenizer.json"));
  auto vocabulary = to_gguf_vocabulary(*text_of(file), config, eos_ids);
  if (!vocabulary) return tl::unexpected<Status>(vocabulary.error().with_prefix(folder));
  // What the post-processor adds, too.
  vocabulary->adds_bos = !text.tokenizer->prefix_ids().empty();
  vocabulary->adds_eos = !text.tokenizer->suffix_ids().empty();
  for (auto id = vocabulary->tokens.size(); id < static_cast<std::size_t>(vocab_size); ++id) {
    vocabulary->tokens.push_back(fmt::format("[PAD{}]", id));
    vocabulary->types.push_back(static_cast<std::int32_t>(TokenType::kUnused));
  }
  return vocabulary;
}

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    DUNLIN_ASSIGN(file, GgufFile::open(path));
    return make_tokenizer(*file);
  }
  ModelText text;
  std::vector<TokenId> eos_ids;
  DUNLIN_TRY(read_generation(path, text, eos_ids));
  DUNLIN_ASSIGN(config, read_tokenizer_config(path));
  DUNLIN_TRY(read_tokenizer(path, config, eos_ids, text));
  return std::move(text.tokenizer);
}

}  // namespace dunlin
