#include "model/open_gguf.h"

#include <array>
#include <utility>

#include "formats/gguf_weight_source.h"
#include "model/registry.h"
#include "model/weights.h"

namespace dunlin {

ModelSummary summarize_tensors(const GgufFile& file) {
  ModelSummary summary;
  std::array<std::int64_t, kNumDTypes> by_dtype{};
  for (const GgufTensor& tensor : file.tensors()) {
    const std::int64_t count = tensor.view.num_elements();
    summary.num_params += count;
    summary.weight_bytes += tensor.view.size_bytes();
    if (!tensor.name.starts_with("blk.") || tensor.view.rank < 2) continue;
    summary.layer_weights += count;
    by_dtype[static_cast<std::size_t>(tensor.view.dtype)] += count;
  }
  std::size_t main_idx = 0;
  for (std::size_t i = 1; i < by_dtype.size(); ++i)
    if (by_dtype[i] > by_dtype[main_idx]) main_idx = i;
  summary.main_dtype = dtype_info(static_cast<DType>(main_idx)).name;
  const GgufTensor* head = file.find_tensor("output.weight");
  if (head == nullptr) head = file.find_tensor("token_embd.weight");
  if (head != nullptr) summary.head_weights = head->view.num_elements();
  return summary;
}

Result<OpenedModel> open_gguf_model(const std::string& path, const LoadOptions& options) {
  DUNLIN_ASSIGN(file, GgufFile::open(path));
  return open_gguf_model(std::move(file), options);
}

Result<OpenedModel> open_gguf_model(std::shared_ptr<const GgufFile> file,
                                    const LoadOptions& options) {
  DUNLIN_ASSIGN(config, config_from_gguf(*file));
  DUNLIN_TRY(check_tensors(config, *file));
  DUNLIN_ASSIGN(source, GgufWeightSource::create(file));
  auto model = load_model(*source, config, options);
  if (!model) return tl::unexpected(model.error().with_prefix(file->path()));
  DUNLIN_TRY(file->check_unchanged());
  const ModelSummary summary = summarize_tensors(*file);
  return OpenedModel{std::move(file), std::move(config), summary, std::move(*model)};
}

}  // namespace dunlin
