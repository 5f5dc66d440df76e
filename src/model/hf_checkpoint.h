// A Hugging Face folder (config.json, safetensors) as a Checkpoint: metadata and tensors under
// GGUF's names, made by the architecture's own file (registry.h). Matrices that are not stored as
// they are found are made by prepare(); norms and biases at once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "model/hf_quantized.h"
#include "model/registry.h"

namespace dunlin {

class HfImport;

class HfCheckpoint final : public Checkpoint {
 public:
  // kNotFound where the folder lacks a file, kUnimplemented where config.json names an architecture
  // that is not here, kInvalidArgument for what is wrong in a file. Messages name the file.
  static Result<std::shared_ptr<const HfCheckpoint>> open(const std::string& folder);

  const std::string& path() const override { return folder_; }
  std::optional<MetadataValue> metadata(std::string_view key) const override;
  const std::map<std::string, MetadataValue, std::less<>>& all_metadata() const {
    return metadata_;
  }
  std::vector<CheckpointTensor> tensors() const override;
  const Safetensors& weights() const { return *weights_; }
  Status in_own_words(Status status) const override;
  Outcome check_unchanged() const override { return weights_->check_unchanged(); }

  std::optional<TensorView> find(std::string_view name) const override;
  void prepare(std::string_view name) const override;
  void discard(std::string_view name) const override;
  void release(const TensorView& tensor) const override { weights_->drop_pages(tensor); }

 private:
  HfCheckpoint() = default;
  Outcome add_stored(const HfImport& import, const Architecture& architecture);
  Outcome add(const HfConfig& config, const HfTensor& stored, std::string name,
              HfTransform transform);
  void add_vectors();
  void replace_tensor(std::string& message) const;

  std::string folder_;
  std::shared_ptr<const Safetensors> weights_;
  std::map<std::string, MetadataValue, std::less<>> metadata_;
  std::map<std::string, std::vector<float>, std::less<>> vectors_;  // what no file holds
  struct Entry {
    LazyTensor tensor;              // stays as it is
    std::vector<std::byte> made{};  // by prepare()
    TensorView view() const {
      TensorView all = tensor.view;
      if (!made.empty()) all.data = made.data();
      return all;
    }
  };
  mutable std::map<std::string, Entry, std::less<>> tensors_;  // by canonical name
};

}  // namespace dunlin
