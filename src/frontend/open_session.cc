#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cpu/memory_limit.h"
#include "formats/gguf_checkpoint.h"
#include "frontend/kv_identity.h"
#include "frontend/model_text.h"
#include "frontend/session.h"
#include "model/open_model.h"

namespace dunlin {
namespace {

// Memory left to the rest of the system and to what a step needs besides weights and KV cache.
constexpr std::int64_t kMemoryMargin = std::int64_t{512} << 20;
// What the engine may plan its KV cache with; 0 where the system tells nothing or nothing is left,
// for which the engine has a default of its own.
std::int64_t memory_for_kv() {
  return std::max<std::int64_t>(memory_limit().available_bytes - kMemoryMargin, 0);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(
    const SessionConfig& config,
    const std::function<void(std::string_view phase, double fraction)>& progress) {
  LoadOptions options;
  DUNLIN_ASSIGN(isa, parse_isa(config.isa));
  options.isa = isa;
  DUNLIN_ASSIGN(recipe, QuantRecipe::parse(config.quantize));
  options.recipe = recipe;
  options.num_threads = config.num_threads;
  options.max_context = config.engine.max_context;
  if (progress) {
    options.progress = [&](std::int64_t done, std::int64_t total) {
      progress(config.quantize.empty() ? "packing weights" : "quantising weights",
               total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1);
    };
  }
  DUNLIN_ASSIGN(checkpoint, open_checkpoint(config.model_path));
  const auto* gguf = dynamic_cast<const GgufCheckpoint*>(checkpoint.get());
  // The vocabulary is read on a thread of its own while the others pack the weights.
  std::optional<Result<ModelText>> read;
  std::jthread reader([&] {
    read = gguf != nullptr ? read_model_text(*gguf->file(), config.chat_template)
                           : read_model_text(config.model_path, config.chat_template);
  });
  // So are the weights for their hash, where blocks are kept on disk.
  std::string weights;
  std::jthread hasher;
  if (!config.engine.prefix_disk.dir.empty())
    hasher = std::jthread([&] { weights = weights_hash(*checkpoint); });
  DUNLIN_ASSIGN(opened, open_model(checkpoint, options));
  reader.join();
  DUNLIN_ASSIGN(text, *std::move(read));
  if (text.tokenizer->vocab_size() > opened.config.vocab_size) {
    return invalid(fmt::format("{}: the vocabulary has {} tokens, but the weights only {}",
                               config.model_path, text.tokenizer->vocab_size(),
                               opened.config.vocab_size));
  }
  SessionParts parts;
  parts.config = config;
  if (text.recommends_sampling) parts.config.sampling = text.sampling;
  parts.config.model_recommends_sampling = text.recommends_sampling;
  parts.tokenizer = std::move(text.tokenizer);
  parts.chat_template = std::move(text.chat_template);
  parts.tool_template = std::move(text.tool_template);
  EngineConfig& engine = parts.config.engine;
  if (hasher.joinable()) {
    hasher.join();
    engine.prefix_disk.identity = kv_identity(weights, *opened.model);
  }
  if (engine.available_bytes == 0) engine.available_bytes = memory_for_kv();
  DUNLIN_ASSIGN(created, Engine::create(std::move(opened.model), engine));
  parts.engine = std::move(created);
  return assemble_session(std::move(parts));
}

}  // namespace dunlin
