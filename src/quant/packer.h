// Packs the matrices of a model in one go: all threads work on all matrices, without a pause
// between two, and the packed bytes of all lie one behind the other in huge pages. Matrices may be
// converted to another type on the way, panel by panel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/function_ref.h"
#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "dunlin/status.h"
#include "quant/finite_check.h"
#include "quant/packed_matrix.h"
#include "tensor/row_order.h"
#include "tensor/tensor_view.h"

namespace dunlin {

class Packer {
 public:
  // Isa::kReference keeps the stored rows (canonical order) for exact float loops.
  explicit Packer(Isa isa) : isa_(isa) {}

  // Matrix number 0, 1, ... `target` must outlive run(), the source's bytes until it is packed. As
  // it is stored, or converted to a type that can_quantize().
  void add(const TensorView& source, RowOrder row_order, PackedMatrix& target, DType as);
  void add(const TensorView& source, RowOrder row_order, PackedMatrix& target) {
    add(source, row_order, target, source.dtype);
  }

  // What a matrix [rows, cols] of that type takes once it is packed.
  static std::int64_t packed_bytes(DType as, std::int64_t rows, std::int64_t cols, Isa isa);

  // Packs all that were added; once. on_packed(idx) is called from any thread, from several at the
  // same time, when the source of matrix idx is read no more.
  void run(ThreadPool& pool, FunctionRef<void(std::size_t idx)> on_packed);

  // After run(). What FiniteCheck says of matrix idx: a value that is not a finite number would
  // turn every token into the same wrong one.
  Outcome outcome(std::size_t idx) const { return tasks_[idx].finite.outcome(); }

 private:
  struct Task {
    Task(const TensorView& view, RowOrder order, PackedMatrix& packed, DType as)
        : source(view), row_order(order), target(packed), finite(source, as) {}
    TensorView source;
    RowOrder row_order;
    PackedMatrix& target;
    FiniteCheck finite;
    std::int64_t first_byte = 0;               // where it begins among the packed bytes of all
    std::atomic<std::int64_t> num_missing{0};  // panels
  };

  std::int64_t allocate();
  void pack_panel(Task& task, std::int64_t panel) const;

  Isa isa_;
  std::deque<Task> tasks_;
};

}  // namespace dunlin
