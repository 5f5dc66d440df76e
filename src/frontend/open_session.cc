#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cpu/memory_limit.h"
#include "frontend/session.h"
#include "formats/gguf_checkpoint.h"
#include "model/open_model.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

// Memory left to the rest of the system and to what a step needs besides weights and KV cache.
constexpr std::int64_t kMemoryMargin = std::int64_t{512} << 20;
// What the engine may plan its KV cache with; 0 where the system tells nothing or nothing is left,
// for which the engine has a default of its own.
std::int64_t memory_for_kv() {
  return std::max<std::int64_t>(memory_limit().available_bytes - kMemoryMargin, 0);
}

struct TextParts {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // null: none
};

Result<std::unique_ptr<ChatTemplate>> find_template(const GgufFile& file,
                                                    const std::string& given) {
  std::string source = given;
  if (source.empty()) {
    if (!file.has("tokenizer.chat_template")) return std::unique_ptr<ChatTemplate>();
    DUNLIN_ASSIGN(stored, file.get_string("tokenizer.chat_template"));
    source = stored;
  }
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) {
    return tl::unexpected(parsed.error().with_prefix(
        given.empty()
            ? file.path() + ": the chat template can't be used (give another with --chat-template)"
            : std::string("--chat-template")));
  }
  return std::make_unique<ChatTemplate>(std::move(*parsed));
}

Result<TextParts> read_text_parts(const GgufFile& file, const std::string& given_template) {
  DUNLIN_ASSIGN(tokenizer, make_tokenizer(file));
  DUNLIN_ASSIGN(chat_template, find_template(file, given_template));
  return TextParts{std::move(tokenizer), std::move(chat_template)};
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(
    const SessionConfig& config,
    const std::function<void(std::string_view phase, double fraction)>& progress) {
  LoadOptions options;
  DUNLIN_ASSIGN(isa, parse_isa(config.isa));
  options.isa = isa;
  options.num_threads = config.num_threads;
  options.max_context = config.engine.max_context;
  if (progress) {
    options.progress = [&](std::int64_t done, std::int64_t total) {
      progress("packing weights",
               total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1);
    };
  }
  DUNLIN_ASSIGN(file, GgufFile::open(config.model_path));
  // The vocabulary is read on a thread of its own while the others pack the weights.
  std::optional<Result<TextParts>> read;
  std::jthread reader([&] { read = read_text_parts(*file, config.chat_template); });
  DUNLIN_ASSIGN(checkpoint, GgufCheckpoint::create(file));
  DUNLIN_ASSIGN(opened, open_model(std::move(checkpoint), options));
  reader.join();
  DUNLIN_ASSIGN(text, *std::move(read));
  if (text.tokenizer->vocab_size() > opened.config.vocab_size) {
    return invalid(fmt::format("{}: the vocabulary has {} tokens, but the weights only {}",
                               config.model_path, text.tokenizer->vocab_size(),
                               opened.config.vocab_size));
  }
  SessionParts parts;
  parts.config = config;
  parts.tokenizer = std::move(text.tokenizer);
  parts.chat_template = std::move(text.chat_template);
  EngineConfig& engine = parts.config.engine;
  if (engine.available_bytes == 0) engine.available_bytes = memory_for_kv();
  DUNLIN_ASSIGN(created, Engine::create(std::move(opened.model), engine));
  parts.engine = std::move(created);
  return assemble_session(std::move(parts));
}

}  // namespace dunlin
