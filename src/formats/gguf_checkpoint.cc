#include "formats/gguf_checkpoint.h"

#include <utility>

#include <fmt/format.h>

namespace dunlin {
namespace {

MetadataValue array_value(const GgufArray& array) {
  const GgufType type = array.element_type();
  if (type == GgufType::kString) {
    std::vector<std::string> strings;
    for (std::size_t i = 0; i < array.size(); ++i) strings.emplace_back(array.string(i));
    return strings;
  }
  if (gguf_type_is_float(type)) {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < array.size(); ++i) numbers.push_back(array.number(i));
    return numbers;
  }
  std::vector<std::int64_t> integers;
  for (std::size_t i = 0; i < array.size(); ++i)
    integers.push_back(type == GgufType::kBool ? array.boolean(i) : array.integer(i));
  return integers;
}

}  // namespace

Result<std::shared_ptr<const GgufCheckpoint>> GgufCheckpoint::create(
    std::shared_ptr<const GgufFile> file) {
  const GgufTensor* embedding = file->find_tensor("token_embd.weight");
  const GgufEntry* tokens = file->find_entry("tokenizer.ggml.tokens");
  if (embedding != nullptr && tokens != nullptr && tokens->type == GgufType::kArray &&
      static_cast<std::int64_t>(tokens->array().size()) != embedding->view.rows()) {
    return invalid(
        fmt::format("{}: tokenizer.ggml.tokens has {} tokens, but token_embd.weight has {} rows",
                    file->path(), tokens->array().size(), embedding->view.rows()));
  }
  return std::shared_ptr<const GgufCheckpoint>(new GgufCheckpoint(std::move(file)));
}

std::optional<MetadataValue> GgufCheckpoint::metadata(std::string_view key) const {
  const GgufEntry* entry = file_->find_entry(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->type == GgufType::kArray) {
    // Arrays of arrays hold nothing that a model needs.
    if (entry->element_type == GgufType::kArray) return std::nullopt;
    return array_value(entry->array());
  }
  if (entry->type == GgufType::kString) return std::string(entry->string());
  if (entry->type == GgufType::kBool) return entry->boolean();
  if (gguf_type_is_float(entry->type)) return entry->number();
  return entry->integer();
}

std::vector<CheckpointTensor> GgufCheckpoint::tensors() const {
  std::vector<CheckpointTensor> tensors;
  tensors.reserve(file_->tensors().size());
  for (const GgufTensor& tensor : file_->tensors())
    tensors.push_back({std::string(tensor.name), tensor.view});
  return tensors;
}

std::optional<TensorView> GgufCheckpoint::find(std::string_view name) const {
  const GgufTensor* tensor = file_->find_tensor(name);
  if (tensor == nullptr) return std::nullopt;
  return tensor->view;
}

}  // namespace dunlin
