#include "quant/packer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "quant/dequantize.h"
#include "quant/panel_codec.h"
#include "quant/row_converter.h"

namespace dunlin {
namespace {

// A chunk is the panels that begin in one huge page, so that two threads seldom meet in a page
// that is being cleared.
constexpr std::int64_t kChunkBytes = Buffer::kHugePage;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t panel_bytes(DType dtype, std::int64_t cols, Isa isa) {
  return isa == Isa::kReference ? row_bytes(dtype, cols) * kPanelRows
                                : panel_codec(dtype).panel_bytes(cols);
}

}  // namespace

std::int64_t Packer::packed_bytes(DType as, std::int64_t rows, std::int64_t cols, Isa isa) {
  return ceil_div(rows, kPanelRows) * panel_bytes(as, cols, isa);
}

void Packer::add(const TensorView& source, RowOrder row_order, PackedMatrix& target, DType as) {
  tasks_.emplace_back(source, row_order, target, as);
  target.dtype_ = as;
  target.isa_ = isa_;
  target.rows_ = source.rows();
  target.cols_ = source.cols();
  target.panel_bytes_ = panel_bytes(as, target.cols_, isa_);
}

// Gives the targets their memory; returns the bytes of all.
std::int64_t Packer::allocate() {
  std::vector<std::size_t> sizes;
  for (const Task& task : tasks_) {
    sizes.push_back(static_cast<std::size_t>(task.target.num_panels() * task.target.panel_bytes_));
  }
  std::vector<Buffer> buffers = Buffer::in_one_block(sizes);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    task.target.data_ = std::move(buffers[i]);
    task.num_missing.store(task.target.num_panels());
    task.first_byte = task.target.data_.data() - tasks_[0].target.data_.data();
    end = task.first_byte + task.target.size_bytes();
  }
  return end;
}

void Packer::pack_panel(Task& task, std::int64_t panel) const {
  const TensorView& source = task.source;
  const DType dtype = task.target.dtype_;
  const std::int64_t stored_bytes = row_bytes(source.dtype, source.cols());
  const std::int64_t bytes = row_bytes(dtype, source.cols());
  const std::byte* rows[kPanelRows] = {};
  std::byte* out = task.target.data_.data() + panel * task.target.panel_bytes_;
  const std::int64_t first = panel * kPanelRows;
  const std::int64_t count = std::min<std::int64_t>(kPanelRows, source.rows() - first);
  const auto stored_row = [&](std::int64_t r) { return task.row_order.stored_row(first + r); };
  for (std::int64_t r = 0; r < count; ++r) rows[r] = source.data + stored_row(r) * stored_bytes;
  std::vector<std::byte> converted;
  if (dtype != source.dtype) {
    converted.resize(static_cast<std::size_t>(count * bytes));
    RowConverter converter(source.dtype, dtype, source.cols());
    for (std::int64_t r = 0; r < count; ++r) {
      std::byte* row = converted.data() + r * bytes;
      if (!converter.convert(rows[r], row)) task.finite.found(stored_row(r));
      rows[r] = row;
    }
  }
  bool finite = true;
  if (isa_ == Isa::kReference) {
    for (std::int64_t r = 0; r < count; ++r)
      std::memcpy(out + r * bytes, rows[r], static_cast<std::size_t>(bytes));
    finite = all_finite(dtype, out, count * source.cols());
  } else {
    const PanelCodec& codec = panel_codec(dtype);
    codec.pack(rows, source.cols(), out);
    finite = codec.is_finite(out, source.cols());
  }
  if (finite) return;
  for (std::int64_t r = 0; r < count; ++r) task.finite.look_at(stored_row(r));
}

void Packer::run(ThreadPool& pool, FunctionRef<void(std::size_t idx)> on_packed) {
  const std::int64_t num_chunks = ceil_div(allocate(), kChunkBytes);
  pool.parallel_for(static_cast<int>(num_chunks), [&](int chunk, int) {
    const std::int64_t begin = chunk * kChunkBytes;
    auto task = std::partition_point(tasks_.begin(), tasks_.end(), [&](const Task& t) {
      return t.first_byte + t.target.size_bytes() <= begin;
    });
    for (; task != tasks_.end() && task->first_byte < begin + kChunkBytes; ++task) {
      const std::int64_t size = task->target.panel_bytes_;
      const std::int64_t first =
          ceil_div(std::max<std::int64_t>(0, begin - task->first_byte), size);
      const std::int64_t end = std::min(task->target.num_panels(),
                                        ceil_div(begin + kChunkBytes - task->first_byte, size));
      for (std::int64_t panel = first; panel < end; ++panel) pack_panel(*task, panel);
      if (end <= first || task->num_missing.fetch_sub(end - first) > end - first) continue;
      on_packed(static_cast<std::size_t>(task - tasks_.begin()));
    }
  });
}

}  // namespace dunlin
