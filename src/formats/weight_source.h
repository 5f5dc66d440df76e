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
  // long as the source. Its data is null where the tensor is not stored as it is found and has to
  // be prepared first. Thread-safe beside all but prepare() and discard().
  virtual std::optional<TensorView> find(std::string_view name) const = 0;

  // Makes such a tensor, which the next find() gives with its data, until it is discarded. Others:
  // nothing.
  virtual void prepare(std::string_view /*name*/) const {}
  virtual void discard(std::string_view /*name*/) const {}

  // Whether the rows of Q and K have the order of tensor/row_order.h in those architectures whose
  // GGUF files have it.
  virtual bool interleaves_qk() const { return false; }

  // The caller has packed this tensor and won't read it soon: its mapped pages may be dropped.
  // Reading it again is slow, not wrong.
  virtual void release(const TensorView& tensor) const = 0;
};

}  // namespace dunlin
