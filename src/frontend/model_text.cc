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
  // A link that leads nowhere is a file that is missing, not one that was never there.
  if (!fs::exists(fs::symlink_status(path, ignored))) return std::optional<MappedFile>();
  DUNLIN_ASSIGN(file, MappedFile::open(path));
  return std::optional<MappedFile>(std::move(file));
}

std::optional<std::string_view> text_of(const std::optional<MappedFile>& file) {
  if (!file) return std::nullopt;
  return file->text();
}

// eos_token_id is a number or a list of them.
void add_eos_ids(const HfConfig& config, std::vector<TokenId>& ids) {
  if (!config.has("eos_token_id")) return;
  const std::vector<std::int64_t> found = config.is_array("eos_token_id")
                                              ? config.integers("eos_token_id")
                                              : std::vector{config.integer("eos_token_id")};
  for (const std::int64_t id : found)
    if (id >= 0) ids.push_back(static_cast<TokenId>(std::min<std::int64_t>(id, INT32_MAX)));
}

// All that a folder says beside weights; of `text` no template yet.
struct FolderText {
  ModelText text;
  std::vector<TokenId> eos_ids;
  std::optional<std::int64_t> vocab_size;  // rows of the weights, as config.json says
  HfTokenizerConfig config;
};

void read_sampling(const HfConfig& config, ModelText& text) {
  SamplingParams& sampling = text.sampling;
  const auto number = [&](std::string_view key, float& value) {
    if (!config.has(key)) return;
    value = static_cast<float>(config.number(key));
    text.recommends_sampling = true;
  };
  number("temperature", sampling.temperature);
  if (config.has("do_sample") && !config.flag("do_sample")) {
    sampling.temperature = 0;  // always the likeliest token, whatever else it says
    text.recommends_sampling = true;
  }
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
Outcome read_generation(const std::string& folder, FolderText& out) {
  for (const std::string_view name : {"generation_config.json", "config.json"}) {
    DUNLIN_ASSIGN(file, find_file(folder, name));
    if (!file) continue;
    DUNLIN_ASSIGN(config, HfConfig::parse(*text_of(file), file->path()));
    add_eos_ids(config, out.eos_ids);
    if (name == "generation_config.json") read_sampling(config, out.text);
    if (name == "config.json" && config.has("vocab_size"))
      out.vocab_size = config.integer("vocab_size");
    DUNLIN_TRY(config.outcome());
  }
  constexpr int kAnyVocabulary = INT32_MAX;
  const Outcome valid = validate(out.text.sampling, kAnyVocabulary);
  if (valid) return {};
  return tl::unexpected<Status>(valid.error().with_prefix(folder + "/generation_config.json"));
}

Result<MappedFile> find_tokenizer_json(const std::string& folder) {
  DUNLIN_ASSIGN(file, find_file(folder, "tokenizer.json"));
  if (file) return std::move(*file);
  return fail(StatusCode::kNotFound,
              folder +
                  ": has no tokenizer.json, the only kind of vocabulary read from folders; "
                  "transformers writes one: AutoTokenizer.from_pretrained(X).save_pretrained(X)");
}

Outcome read_tokenizer(const std::string& folder, FolderText& out) {
  DUNLIN_ASSIGN(file, find_tokenizer_json(folder));
  auto tokenizer = make_hf_tokenizer(file.text(), out.config, out.eos_ids);
  if (!tokenizer) return tl::unexpected<Status>(tokenizer.error().with_prefix(folder));
  out.text.tokenizer = std::move(*tokenizer);
  return {};
}

Result<HfTokenizerConfig> read_tokenizer_config(const std::string& folder) {
  DUNLIN_ASSIGN(file, find_file(folder, "tokenizer_config.json"));
  DUNLIN_ASSIGN(jinja, find_file(folder, "chat_template.jinja"));
  auto config = HfTokenizerConfig::read(text_of(file), text_of(jinja));
  if (!config) return tl::unexpected<Status>(config.error().with_prefix(folder));
  return config;
}

Result<FolderText> read_folder(const std::string& folder) {
  FolderText out;
  DUNLIN_TRY(read_generation(folder, out));
  DUNLIN_ASSIGN(config, read_tokenizer_config(folder));
  if (out.vocab_size) config.vocab_size = *out.vocab_size;
  out.config = std::move(config);
  DUNLIN_TRY(read_tokenizer(folder, out));
  return out;
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
  DUNLIN_ASSIGN(read, read_folder(folder));
  ModelText& text = read.text;
  const std::string* plain = read.config.find_chat_template(false);
  const std::string* tools = read.config.find_chat_template(true);
  if (plain != nullptr || !given_template.empty()) {
    DUNLIN_ASSIGN(parsed, parse_template(plain != nullptr ? *plain : "", given_template, folder));
    text.chat_template = std::move(parsed);
  }
  if (tools != plain && given_template.empty()) {
    DUNLIN_ASSIGN(parsed, parse_template(*tools, "", folder));
    text.tool_template = std::move(parsed);
  }
  return std::move(text);
}

Result<GgufVocabulary> read_gguf_vocabulary(const std::string& folder, int vocab_size) {
  DUNLIN_ASSIGN(read, read_folder(folder));  // what can't be used here must not be written either
  DUNLIN_ASSIGN(file, find_tokenizer_json(folder));
  auto vocabulary = to_gguf_vocabulary(file.text(), read.config, read.eos_ids);
  if (!vocabulary) return tl::unexpected<Status>(vocabulary.error().with_prefix(folder));
  if (vocabulary->tokens.size() > static_cast<std::size_t>(vocab_size)) {
    return invalid(fmt::format("{}: the vocabulary has {} tokens, but the weights only {}", folder,
                               vocabulary->tokens.size(), vocab_size));
  }
  for (auto id = vocabulary->tokens.size(); id < static_cast<std::size_t>(vocab_size); ++id) {
    vocabulary->tokens.push_back(fmt::format("[PAD{}]", id));
    vocabulary->types.push_back(static_cast<std::int32_t>(TokenType::kUnused));
    if (!vocabulary->scores.empty()) vocabulary->scores.push_back(vocabulary->scores.back());
  }
  return vocabulary;
}

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    DUNLIN_ASSIGN(file, GgufFile::open(path));
    return make_tokenizer(*file);
  }
  DUNLIN_ASSIGN(read, read_folder(path));
  return std::move(read.text.tokenizer);
}

}  // namespace dunlin
