#include "kernels/rope.h"

#include <cmath>

#include "base/check.h"
#include "kernels/row_chunks.h"

namespace dunlin {

RopeFrequencies rope_frequencies(int rope_dim, double base) {
  DUNLIN_CHECK(rope_dim > 0 && rope_dim % 2 == 0, "dimensions are rotated in pairs");
  RopeFrequencies frequencies;
  frequencies.inv_freq.resize(static_cast<std::size_t>(rope_dim / 2));
  for (std::size_t j = 0; j < frequencies.inv_freq.size(); ++j)
    frequencies.inv_freq[j] = std::pow(base, -2.0 * static_cast<double>(j) / rope_dim);
  return frequencies;
}

void rope_table(ThreadPool& pool, const RopeFrequencies& frequencies,
                std::span<const std::int32_t> positions, float* cos, float* sin) {
  const std::size_t half = frequencies.inv_freq.size();
  // A sine costs some fifty times an element-wise operation.
  constexpr std::int64_t kSineCost = 50;
  for_rows(
      pool, static_cast<std::int64_t>(positions.size()),
      static_cast<std::int64_t>(half) * kSineCost, [&](std::int64_t token) {
        const auto row = static_cast<std::size_t>(token);
        for (std::size_t j = 0; j < half; ++j) {
          const double angle = positions[row] * frequencies.inv_freq[j];
          cos[row * half + j] = static_cast<float>(std::cos(angle) * frequencies.attention_factor);
          sin[row * half + j] = static_cast<float>(std::sin(angle) * frequencies.attention_factor);
        }
      });
}

void apply_rope(RopeStyle style, const float* cos, const float* sin, int rope_dim, int num_heads,
                int head_dim, float* x) {
  const int half = rope_dim / 2;
  for (int h = 0; h < num_heads; ++h) {
    float* head = x + std::int64_t{h} * head_dim;
    if (style == RopeStyle::kRotateHalf) {
      for (int j = 0; j < half; ++j) {
        const float a = head[j], b = head[j + half];
        head[j] = a * cos[j] - b * sin[j];
        head[j + half] = b * cos[j] + a * sin[j];
      }
    } else {
      for (int j = 0; j < half; ++j) {
        const float a = head[2 * j], b = head[2 * j + 1];
        head[2 * j] = a * cos[j] - b * sin[j];
        head[2 * j + 1] = b * cos[j] + a * sin[j];
      }
    }
  }
}

}  // namespace dunlin
