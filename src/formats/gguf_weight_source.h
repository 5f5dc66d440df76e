// The tensors of a GGUF file as a WeightSource. GGUF's names are the canonical names and Gemma's
// norms have their +1 in the file already, so what is left is the order of Q and K rows.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "dunlin/status.h"
#include "formats/gguf.h"
#include "formats/weight_source.h"

namespace dunlin {

class GgufWeightSource : public WeightSource {
 public:
  // Refuses a file without "general.architecture", and one of the llama family whose head
  // dimension can't be told or is odd. All else is checked by model/.
  static Result<std::unique_ptr<GgufWeightSource>> create(std::shared_ptr<const GgufFile> file);

  // For a bias vector, row_order holds for its elements.
  std::optional<SourceTensor> find(std::string_view name) const override;
  void release(const SourceTensor& tensor) const override;

  const GgufFile& file() const { return *file_; }

 private:
  GgufWeightSource(std::shared_ptr<const GgufFile> file, int interleaved_head_dim)
      : file_(std::move(file)), interleaved_head_dim_(interleaved_head_dim) {}

  std::shared_ptr<const GgufFile> file_;
  int interleaved_head_dim_;  // 0: rows are in canonical order
};

}  // namespace dunlin
