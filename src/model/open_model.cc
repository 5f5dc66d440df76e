#include "model/open_model.h"

#include <array>
#include <filesystem>
#include <utility>

#include "formats/gguf_checkpoint.h"
#include "model/hf_checkpoint.h"
#include "model/hf_description.h"
#include "model/registry.h"
#include "model/weights.h"

namespace dunlin {

ModelSummary summarize_tensors(const Checkpoint& checkpoint, const ModelConfig& config,
                               const std::optional<QuantRecipe>& recipe) {
  ModelSummary summary;
  std::array<std::int64_t, kNumDTypes> by_dtype{};
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    TensorView view = tensor.view;
    view.dtype = loaded_type(recipe, tensor.name, view, config);
    const std::int64_t count = view.num_elements();
    summary.num_params += count;
    summary.weight_bytes += view.size_bytes();
    summary.bytes_by_dtype[view.dtype] += view.size_bytes();
    if (!tensor.name.starts_with("blk.") || view.rank < 2) continue;
    summary.layer_weights += count;
    by_dtype[static_cast<std::size_t>(view.dtype)] += count;
  }
  std::size_t main_idx = 0;
  for (std::size_t i = 1; i < by_dtype.size(); ++i)
    if (by_dtype[i] > by_dtype[main_idx]) main_idx = i;
  summary.main_dtype = dtype_info(static_cast<DType>(main_idx)).name;
  std::optional<TensorView> head = checkpoint.find("output.weight");
  if (!head) head = checkpoint.find("token_embd.weight");
  if (head) summary.head_weights = head->num_elements();
  return summary;
}

Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return HfCheckpoint::open(path);
  DUNLIN_ASSIGN(file, GgufFile::open(path));
  return GgufCheckpoint::create(std::move(file));
}

namespace {

// The config.json where there is nothing else; "" where there is.
std::string lone_config(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.extension() == ".json") return path;
  if (!std::filesystem::is_directory(path, ignored)) return "";
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
    if (entry.path().extension() == ".safetensors") return "";
  return std::filesystem::exists(path / "config.json", ignored) ? path / "config.json" : "";
}

}  // namespace

Result<DescribedModel> describe_model(const std::string& path) {
  DescribedModel model;
  if (const std::string config = lone_config(path); !config.empty()) {
    DUNLIN_ASSIGN(description, HfDescription::open(config));
    model.absent_weights = description->dtype();
    model.checkpoint = std::move(description);
  } else {
    DUNLIN_ASSIGN(checkpoint, open_checkpoint(path));
    model.checkpoint = std::move(checkpoint);
  }
  DUNLIN_ASSIGN(config, read_config(*model.checkpoint));
  model.config = std::move(config);
  if (!model.absent_weights) DUNLIN_TRY(check_checkpoint(model.config, *model.checkpoint));
  return model;
}

Result<OpenedModel> open_model(const std::string& path, const LoadOptions& options) {
  DUNLIN_ASSIGN(checkpoint, open_checkpoint(path));
  DUNLIN_ASSIGN(config, read_config(*checkpoint));
  DUNLIN_TRY(check_checkpoint(config, *checkpoint));
  return open_model(std::move(checkpoint), std::move(config), options);
}

Result<OpenedModel> open_model(std::shared_ptr<const Checkpoint> checkpoint, ModelConfig config,
                               const LoadOptions& options) {
  auto model = load_model(*checkpoint, config, options);
  if (!model) {
    return tl::unexpected<Status>(
        checkpoint->in_own_words(model.error().with_prefix(checkpoint->path())));
  }
  DUNLIN_TRY(checkpoint->check_unchanged());
  const ModelSummary summary = summarize_tensors(*checkpoint, config, options.recipe);
  return OpenedModel{std::move(checkpoint), std::move(config), summary, std::move(*model)};
}

}  // namespace dunlin
