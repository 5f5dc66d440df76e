#include "frontend/file_facts.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cpu/thread_pool.h"
#include "formats/gguf_checkpoint.h"
#include "kv/kv_layout.h"
#include "model/open_model.h"
#include "model/registry.h"
#include "model/weights.h"
#include "quant/finite_check.h"
#include "text/chat_template.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

void add_tensors(const Checkpoint& checkpoint, FileFacts& facts) {
  const ModelSummary summary = summarize_tensors(checkpoint);
  facts.num_params = summary.num_params;
  facts.weight_bytes = summary.weight_bytes;
  std::map<std::string, std::int64_t> by_dtype;
  for (const CheckpointTensor& tensor : checkpoint.tensors())
    by_dtype[std::string(dtype_info(tensor.view.dtype).name)] += tensor.view.size_bytes();
  facts.bytes_by_dtype.assign(by_dtype.begin(), by_dtype.end());
  std::sort(facts.bytes_by_dtype.begin(), facts.bytes_by_dtype.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
}

void add_config(const ModelConfig& config, FileFacts& facts) {
  facts.num_layers = config.num_layers();
  facts.hidden_size = config.hidden_size;
  facts.num_heads = config.num_heads;
  facts.num_kv_heads = config.num_kv_heads;
  facts.head_dim = config.head_dim;
  facts.vocab_size = config.vocab_size;
  facts.context_length = config.context_length;
  for (const LayerConfig& layer : config.layers)
    if (layer.window > 0) {
      facts.window = layer.window;
      ++facts.num_window_layers;
    }
  const KvLayout layout = kv_layout(config, DType::kF16);
  facts.kv_bytes_per_token = layout.bytes_per_token();
  std::vector<int> contexts;
  for (int context = 2048; context < config.context_length; context *= 4)
    contexts.push_back(context);
  contexts.push_back(config.context_length);
  for (const int context : contexts) {
    MemoryRow row{context, {}};
    for (std::size_t i = 0; i < kMemoryBatches.size(); ++i)
      row.bytes[i] = facts.weight_bytes +
                     kMemoryBatches[i] * layout.blocks_for(context) * layout.block_bytes();
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

Outcome check_values(const GgufFile& file,
                     const std::function<void(std::int64_t done, std::int64_t total)>& progress) {
  ThreadPool pool;
  std::int64_t done = 0, total = 0;
  for (const GgufTensor& tensor : file.tensors()) total += tensor.view.size_bytes();
  for (const GgufTensor& tensor : file.tensors()) {
    if (const Outcome finite = check_finite(tensor.view, pool); !finite) {
      return tl::unexpected(
          finite.error().with_prefix(fmt::format("{}: tensor {}", file.path(), tensor.name)));
    }
    file.drop_pages(tensor.view);
    done += tensor.view.size_bytes();
    if (progress) progress(done, total);
  }
  return file.check_unchanged();
}

}  // namespace

Result<FileFacts> check_file(
    const std::string& path,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress) {
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
  DUNLIN_ASSIGN(config, read_config(*checkpoint));
  DUNLIN_TRY(check_checkpoint(config, *checkpoint));
  DUNLIN_TRY(check_values(*file, progress));
  add_tensors(*checkpoint, facts);
  add_config(config, facts);
  return facts;
}

}  // namespace dunlin
