#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cpu/memory_limit.h"
#include "cpu/thread_pool.h"
#include "engine/memory_plan.h"
#include "formats/gguf_checkpoint.h"
#include "frontend/kv_identity.h"
#include "frontend/model_text.h"
#include "frontend/session.h"
#include "model/open_model.h"
#include "model/registry.h"
#include "model/weight_sizes.h"
#include "model/weights.h"

namespace dunlin {
namespace {

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / 0x1p20; }

// What will be taken, held against what may be: refused here, before the weights are read. Sets the
// size of the KV cache.
Result<MemoryTable> plan_memory(const Checkpoint& checkpoint, const ModelConfig& model,
                                const SessionConfig& config, const LoadOptions& options,
                                EngineConfig& engine) {
  if (engine.max_context > model.context_length) {
    return invalid(fmt::format("a context of {} tokens is asked for, but the model has {}",
                               engine.max_context, model.context_length));
  }
  const WeightSizes sizes = weight_sizes(model, options.isa, checkpoint, options.recipe);
  const int num_threads = config.num_threads > 0 ? config.num_threads : default_num_threads();
  const MemoryPlanner planner(model, sizes, kv_layout(model, options.kv_formats), num_threads,
                              engine);
  const bool is_asked_for = config.memory_bytes > 0;
  const std::int64_t budget = is_asked_for ? config.memory_bytes : memory_budget(memory_limit());
  if (engine.kv_bytes == 0 && budget == 0) engine.kv_bytes = kDefaultKvBytes;
  if (engine.kv_bytes == 0) {
    const MemoryPlan plan = planner.within(budget);
    if (Outcome fits = check_plan(planner, plan, budget, engine.max_context); !fits)
      return tl::unexpected(fits.error().with_prefix(checkpoint.path()));
    engine.kv_bytes = plan.kv;
    return memory_table(planner, plan, budget);
  }
  const MemoryPlan plan =
      planner.with_blocks(std::min(engine.kv_bytes / planner.layout().block_bytes(), kMaxBlocks));
  if (is_asked_for && plan.total() > budget) {
    return fail(StatusCode::kResourceExhausted,
                fmt::format("{}: a KV cache of {:.0f} MiB and the rest take {:.0f} MiB, more than "
                            "the {:.0f} of --memory",
                            checkpoint.path(), mib(plan.kv), mib(plan.total()), mib(budget)));
  }
  return memory_table(planner, plan, budget);
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
  options.kv_formats = config.kv_formats;
  options.max_context = config.engine.max_context;
  if (progress) {
    options.progress = [&](std::int64_t done, std::int64_t total) {
      progress(config.quantize.empty() ? "packing weights" : "quantising weights",
               total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1);
    };
  }
  DUNLIN_ASSIGN(checkpoint, open_checkpoint(config.model_path));
  const auto* gguf = dynamic_cast<const GgufCheckpoint*>(checkpoint.get());
  EngineConfig engine = config.engine;
  DUNLIN_ASSIGN(model, read_config(*checkpoint));
  DUNLIN_TRY(check_checkpoint(model, *checkpoint));
  DUNLIN_ASSIGN(memory, plan_memory(*checkpoint, model, config, options, engine));
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
  DUNLIN_ASSIGN(opened, open_model(checkpoint, std::move(model), options));
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
  if (hasher.joinable()) {
    hasher.join();
    engine.prefix_disk.identity = kv_identity(weights, *opened.model);
  }
  parts.config.engine = engine;
  parts.memory = std::move(memory);
  DUNLIN_ASSIGN(created, Engine::create(std::move(opened.model), engine));
  parts.engine = std::move(created);
  return assemble_session(std::move(parts));
}

}  // namespace dunlin
