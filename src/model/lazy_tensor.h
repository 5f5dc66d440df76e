// A tensor of a checkpoint that may have to be made of stored ones: what it will be is known at
// once, its bytes only when somebody asks, so that a model is never in memory twice.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tensor/tensor_view.h"

namespace dunlin {

struct LazyTensor {
  TensorView view;                           // data: null where `fill` makes it
  std::function<void(std::byte* out)> fill;  // out [view.size_bytes()]; empty: view.data is there
  std::vector<TensorView> sources;           // the stored tensors that are read

  struct Bytes {
    const std::byte* data;
    std::vector<std::byte> made;  // empty where stored
  };
  // Valid as long as the result and the stored tensors.
  Bytes read() const {
    if (!fill) return {view.data, {}};
    std::vector<std::byte> made(static_cast<std::size_t>(view.size_bytes()));
    fill(made.data());
    const std::byte* data = made.data();
    return {data, std::move(made)};
  }

  // What `fill` makes of this one.
  LazyTensor derived(TensorView shape, std::function<void(std::byte* out)> make) const {
    shape.data = nullptr;
    return {shape, std::move(make), sources};
  }
};

inline LazyTensor stored_tensor(const TensorView& view) { return {view, {}, {view}}; }

}  // namespace dunlin
