#include "frontend/file_facts.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "engine/memory_plan.h"
#include "formats/gguf_checkpoint.h"
#include "frontend/embedding.h"
#include "frontend/model_text.h"
#include "kv/kv_layout.h"
#include "model/hf_checkpoint.h"
#include "model/open_model.h"
#include "model/registry.h"
#include "model/weight_sizes.h"
#include "model/weights.h"
#include "quant/finite_check.h"
#include "text/chat_template.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

using Recipe = std::optional<QuantRecipe>;

void add_tensors(const Checkpoint& checkpoint, const ModelConfig& config, const Recipe& recipe,
                 FileFacts& facts) {
  const ModelSummary summary = summarize_tensors(checkpoint, config, recipe);
  facts.num_params = summary.num_params;
  facts.weight_bytes = summary.weight_bytes;
  for (const auto& [dtype, bytes] : summary.bytes_by_dtype)
    facts.bytes_by_dtype.emplace_back(dtype_info(dtype).name, bytes);
  std::sort(facts.bytes_by_dtype.begin(), facts.bytes_by_dtype.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
}

void add_config(const Checkpoint& checkpoint, const ModelConfig& config, const Recipe& recipe,
                FileFacts& facts) {
  facts.num_layers = config.num_layers();
  facts.hidden_size = config.hidden_size;
  facts.num_heads = config.num_heads;
  facts.num_kv_heads = config.num_kv_heads;
  facts.head_dim = config.head_dim;
  facts.vocab_size = config.vocab_size;
  facts.context_length = config.context_length;
  facts.is_encoder = config.is_encoder;
  facts.pooling = pooling_name(config.pooling);
  for (const LayerConfig& layer : config.layers)
    if (layer.window > 0) {
      facts.window = layer.window;
      ++facts.num_window_layers;
    }
  const KvLayout layout = kv_layout(config, KvFormat::kF16);
  facts.kv_bytes_per_token = layout.bytes_per_token();
  std::vector<int> contexts;
  for (int context = 2048; context < config.context_length; context *= 4)
    contexts.push_back(context);
  contexts.push_back(config.context_length);
  const WeightSizes sizes = weight_sizes(config, best_isa(), checkpoint, recipe);
  for (const int context : contexts) {
    MemoryRow row{context, {}};
    for (std::size_t i = 0; i < kMemoryBatches.size(); ++i) {
      EngineConfig limits;
      limits.max_seqs = kMemoryBatches[i];
      const MemoryPlanner planner(config, sizes, layout, default_num_threads(), limits);
      row.bytes[i] = planner.with_sequences(kMemoryBatches[i], context).total();
    }
    facts.memory.push_back(row);
  }
}

Outcome check_template(const GgufFile& file) {
  if (!file.has("tokenizer.chat_template")) return {};
  DUNLIN_ASSIGN(source, file.get_string("tokenizer.chat_template"));
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed) {
    return tl::unexpected(parsed.error().with_prefix(file.path() + ": tokenizer.chat_template"));
  }
  return {};
}

Outcome check_finite(const TensorView& view, ThreadPool& pool) {
  constexpr std::int64_t kChunkBytes = 256 * 1024;
  const std::int64_t per_chunk =
      std::max<std::int64_t>(1, kChunkBytes / row_bytes(view.dtype, view.cols()));
  FiniteCheck finite(view);
  pool.parallel_for(static_cast<int>((view.rows() + per_chunk - 1) / per_chunk),
                    [&](int chunk, int) {
                      const std::int64_t end = std::min(view.rows(), (chunk + 1) * per_chunk);
                      for (std::int64_t row = chunk * per_chunk; row < end; ++row)
                        finite.look_at(row);
                    });
  return finite.outcome();
}

using Progress = std::function<void(std::int64_t done, std::int64_t total)>;

Outcome check_values(const Checkpoint& checkpoint, const Progress& progress) {
  ThreadPool pool;
  std::int64_t done = 0, total = 0;
  const std::vector<CheckpointTensor> tensors = checkpoint.tensors();
  for (const CheckpointTensor& tensor : tensors) total += tensor.view.size_bytes();
  for (const CheckpointTensor& tensor : tensors) {
    checkpoint.prepare(tensor.name);
    const TensorView view = *checkpoint.find(tensor.name);
    if (const Outcome finite = check_finite(view, pool); !finite) {
      return tl::unexpected(
          finite.error().with_prefix(fmt::format("{}: tensor {}", checkpoint.path(), tensor.name)));
    }
    checkpoint.release(view);
    checkpoint.discard(tensor.name);
    done += tensor.view.size_bytes();
    if (progress) progress(done, total);
  }
  return checkpoint.check_unchanged();
}

Outcome check_weights(const Checkpoint& checkpoint, const Recipe& recipe, const Progress& progress,
                      FileFacts& facts) {
  DUNLIN_ASSIGN(config, read_config(checkpoint));
  DUNLIN_TRY(check_checkpoint(config, checkpoint));
  DUNLIN_TRY(check_values(checkpoint, progress));
  add_tensors(checkpoint, config, recipe, facts);
  add_config(checkpoint, config, recipe, facts);
  return {};
}

Result<FileFacts> check_folder(const std::string& path, const Recipe& recipe,
                               const Progress& progress) {
  DUNLIN_ASSIGN(checkpoint, HfCheckpoint::open(path));
  FileFacts facts;
  facts.format = FileFormat::kHuggingFace;
  facts.path = path;
  facts.file_bytes = checkpoint->weights().size_bytes();
  facts.num_parts = checkpoint->weights().num_files();
  facts.num_keys = checkpoint->all_metadata().size();
  facts.num_tensors = checkpoint->weights().tensors().size();
  facts.architecture = std::get<std::string>(checkpoint->all_metadata().at("general.architecture"));
  facts.tokenizer = "none";
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path + "/tokenizer.json", ignored))) {
    DUNLIN_ASSIGN(text, read_model_text(path, ""));
    facts.tokenizer = "tokenizer.json";
    facts.chat_template = text.chat_template != nullptr;
  }
  DUNLIN_TRY(check_weights(*checkpoint, recipe, progress, facts));
  return facts;
}

Result<FileFacts> check_gguf(const std::string& path, const Recipe& recipe,
                             const Progress& progress) {
  DUNLIN_ASSIGN(file, GgufFile::open(path));
  FileFacts facts;
  facts.path = path;
  facts.file_bytes = file->size_bytes();
  facts.num_parts = file->num_parts();
  facts.version = file->version();
  facts.num_keys = file->entries().size();
  facts.num_tensors = file->tensors().size();
  DUNLIN_ASSIGN(architecture, file->get_string("general.architecture"));
  DUNLIN_ASSIGN(name, file->get_string("general.name", ""));
  DUNLIN_ASSIGN(tokenizer, file->get_string("tokenizer.ggml.model", "none"));
  facts.architecture = architecture;
  facts.name = name;
  facts.tokenizer = tokenizer;
  facts.chat_template = file->has("tokenizer.chat_template");
  DUNLIN_TRY(check_template(*file));
  facts.vocabulary_only = file->tensors().empty();
  if (facts.tokenizer != "none") DUNLIN_TRY(make_tokenizer(*file));
  if (facts.vocabulary_only) return facts;
  DUNLIN_ASSIGN(checkpoint, GgufCheckpoint::create(file));
  DUNLIN_TRY(check_weights(*checkpoint, recipe, progress, facts));
  return facts;
}

}  // namespace

Result<FileFacts> check_file(const std::string& path, const Recipe& recipe,
                             const Progress& progress) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? check_folder(path, recipe, progress)
                                                      : check_gguf(path, recipe, progress);
}

}  // namespace dunlin
