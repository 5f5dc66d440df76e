#include "kernels/embed.h"

#include "base/check.h"
#include "kernels/row_chunks.h"

namespace dunlin {

void embed(ThreadPool& pool, const PackedMatrix& table, std::span<const std::int32_t> ids,
           float scale, float* out) {
  const std::int64_t n = table.cols();
  for_rows(pool, static_cast<std::int64_t>(ids.size()), n, [&](std::int64_t token) {
    const std::int32_t id = ids[static_cast<std::size_t>(token)];
    DUNLIN_DCHECK(id >= 0 && id < table.rows(), "a token id outside of the vocabulary");
    float* row = out + token * n;
    table.dequantize_row(id, row);
    if (scale != 1.0f)
      for (std::int64_t i = 0; i < n; ++i) row[i] *= scale;
  });
}

}  // namespace dunlin
