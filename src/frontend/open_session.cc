#include <algorithm>

#include <fmt/format.h>

#include "cpu/memory_limit.h"
#include "frontend/session.h"
#include "model/open_gguf.h"
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

}  // namespace

Result<std::unique_ptr<Session>> Session::open(
    const SessionConfig& config,
    const std::function<void(std::string_view phase, double fraction)>& progress) {
  LoadOptions options;
  DUNLIN_ASSIGN(isa, parse_isa(config.isa));
  options.isa = isa;
  options.num_threads = config.num_threads;
  if (progress) {
    options.progress = [&](std::int64_t done, std::int64_t total) {
      progress("packing weights",
               total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1);
    };
  }
  DUNLIN_ASSIGN(opened, open_gguf_model(config.model_path, options));
  SessionParts parts;
  parts.config = config;
  if (progress) progress("reading the vocabulary", 1);
  DUNLIN_ASSIGN(tokenizer, make_tokenizer(*opened.file));
  if (tokenizer->vocab_size() > opened.config.vocab_size) {
    return invalid(fmt::format("{}: the vocabulary has {} tokens, but the weights only {}",
                               config.model_path, tokenizer->vocab_size(),
                               opened.config.vocab_size));
  }
  parts.tokenizer = std::move(tokenizer);
  DUNLIN_ASSIGN(chat_template, find_template(*opened.file, config.chat_template));
  parts.chat_template = std::move(chat_template);
  EngineConfig& engine = parts.config.engine;
  if (engine.available_bytes == 0) engine.available_bytes = memory_for_kv();
  DUNLIN_ASSIGN(created, Engine::create(std::move(opened.model), engine));
  parts.engine = std::move(created);
  return assemble_session(std::move(parts));
}

}  // namespace dunlin
