// Where weights come from: a name gives a typed view in one canonical form, whatever the file.
//
// Canonical names are GGUF's tensor names, which are the same for every architecture
// ("token_embd.weight", "blk.3.attn_q.weight"). Canonical form: linear weights [out, in]; rows of
// Q and K ordered for rotate-half (NeoX) RoPE where the architecture uses it; RMSNorm weights
// as the factor itself (Gemma's +1 folded in).
#pragma once

#include <optional>
#include <string_view>

#include "tensor/row_order.h"
#include "tensor/tensor_view.h"

namespace dunlin {

struct SourceTensor {
  TensorView view;
  RowOrder row_order;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // The tensor of that canonical name; nullopt where the file has none. The view stays valid as
  // long as the source. Thread-safe.
  virtual std::optional<SourceTensor> find(std::string_view name) const = 0;

  // The caller has packed this tensor and won't read it soon: its mapped pages may be dropped.
  // Reading it again is slow, not wrong.
  virtual void release(const SourceTensor& tensor) const = 0;
};

}  // namespace dunlin
