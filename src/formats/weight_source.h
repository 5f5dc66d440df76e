// Where weights come from: a name gives a typed view in one canonical form, whatever the file.
//
// Canonical names are GGUF's tensor names, which are the same for every architecture
// ("token_embd.weight", "blk.3.attn_q.weight"). Canonical form: linear weights [out, in]; RMSNorm
// weights as the factor itself (Gemma's +1 folded in).
#pragma once

#include <optional>
#include <string_view>

#include "tensor/tensor_view.h"

namespace dunlin {

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // The tensor of that canonical name; nullopt where there is none. The view stays valid as
  // long as the source. Thread-safe.
  virtual std::optional<TensorView> find(std::string_view name) const = 0;

  // Whether the rows of Q and K have the order of tensor/row_order.h in those architectures whose
  // GGUF files have it.
  virtual bool interleaves_qk() const { return false; }

  // The caller has packed this tensor and won't read it soon: its mapped pages may be dropped.
  // Reading it again is slow, not wrong.
  virtual void release(const TensorView& tensor) const = 0;
};

}  // namespace dunlin
