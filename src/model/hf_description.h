// A model that only its config.json describes: no weights are at hand, but read_config() and
// tensor_slots() say what they would be.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/hf_config.h"

namespace dunlin {

// Tensors that decide how an architecture is read are there as shapes, without data: the
// embedding, the output layer, biases, the routers of layers with experts.
class HfDescription final : public Checkpoint {
 public:
  // `file` is a config.json. kNotFound, kUnimplemented and kInvalidArgument as HfCheckpoint::open.
  static Result<std::shared_ptr<const HfDescription>> open(const std::string& file);

  const std::string& path() const override { return config_.path(); }
  std::optional<MetadataValue> metadata(std::string_view key) const override;
  std::vector<CheckpointTensor> tensors() const override { return {}; }
  Status in_own_words(Status status) const override;
  Outcome check_unchanged() const override { return {}; }
  std::optional<TensorView> find(std::string_view name) const override;
  void release(const TensorView&) const override {}

  // The type that config.json says its weights have: torch_dtype, else BF16.
  DType dtype() const;

 private:
  explicit HfDescription(HfConfig config) : config_(std::move(config)) {}
  bool has_layer_tensor(std::int64_t layer, std::string_view name) const;

  HfConfig config_;
  bool ties_head_ = false;
  std::map<std::string, MetadataValue, std::less<>> metadata_;
  std::map<std::string, std::vector<float>, std::less<>> vectors_;
};

}  // namespace dunlin
