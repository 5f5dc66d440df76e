// A GGUF file as a Checkpoint. Its keys and names are the canonical ones.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/gguf.h"

namespace dunlin {

class GgufCheckpoint final : public Checkpoint {
 public:
  // Refuses a file whose vocabulary has not as many tokens as its embedding has rows: ids would be
  // out of range.
  static Result<std::shared_ptr<const GgufCheckpoint>> create(std::shared_ptr<const GgufFile> file);

  const std::string& path() const override { return file_->path(); }
  // Integers of every width as int64 (u64 saturates), floats as double. Arrays of strings are
  // copied, so ask for the vocabulary elsewhere.
  std::optional<MetadataValue> metadata(std::string_view key) const override;
  std::vector<CheckpointTensor> tensors() const override;
  Outcome check_unchanged() const override { return file_->check_unchanged(); }

  std::optional<TensorView> find(std::string_view name) const override;
  bool interleaves_qk() const override { return true; }
  void release(const TensorView& tensor) const override { file_->drop_pages(tensor); }

  const std::shared_ptr<const GgufFile>& file() const { return file_; }

 private:
  explicit GgufCheckpoint(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}

  std::shared_ptr<const GgufFile> file_;
};

}  // namespace dunlin
