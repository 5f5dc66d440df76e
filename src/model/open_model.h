// A checkpoint on disk to a ready model in one call: what commands and the session use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "formats/checkpoint.h"
#include "model/config.h"
#include "model/loader.h"
#include "model/model.h"

namespace dunlin {

// What a checkpoint's tensors amount to, as they are once loaded.
struct ModelSummary {
  std::int64_t num_params = 0;
  std::int64_t weight_bytes = 0;   // of all tensors
  std::int64_t layer_weights = 0;  // elements of the layers' matrices
  std::int64_t head_weights = 0;   // elements of the matrix that gives logits
  std::string main_dtype;          // the type that holds most of the layers' weights
  std::map<DType, std::int64_t> bytes_by_dtype;
};
ModelSummary summarize_tensors(const Checkpoint& checkpoint, const ModelConfig& config,
                               const std::optional<QuantRecipe>& recipe);

// A GGUF file, or a folder with config.json and safetensors. Errors name the file.
Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::string& path);

// A model to reckon with, loaded or not: a GGUF file, a folder, or a config.json alone (itself, or
// in a folder without weights). Every tensor of a checkpoint has been checked, no value of it.
struct DescribedModel {
  std::shared_ptr<const Checkpoint> checkpoint;
  ModelConfig config;
  // The type that config.json gives the weights, where they are not at hand.
  std::optional<DType> absent_weights;
};
Result<DescribedModel> describe_model(const std::string& path);

struct OpenedModel {
  std::shared_ptr<const Checkpoint> checkpoint;
  ModelConfig config;
  ModelSummary summary;
  std::unique_ptr<Model> model;
};

// Opens, checks and packs. Errors name the file.
Result<OpenedModel> open_model(const std::string& path, const LoadOptions& options);
// The same of a checkpoint that is open, read and checked already.
Result<OpenedModel> open_model(std::shared_ptr<const Checkpoint> checkpoint, ModelConfig config,
                               const LoadOptions& options);

}  // namespace dunlin
