#include "quant/iq4_quantizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "quant/iq4_nl.h"
#include "quant/scale_search.h"

namespace dunlin {
namespace {

using scale_search::LaneBits;
using scale_search::Lanes;

constexpr int kBlock = BlockIq4Nl::kSize;
constexpr int kCodes = 16;
constexpr float kLargest = 1e15f;  // outside of it sums of squares leave the floats

float value_of(int code) { return static_cast<float>(kIq4Values[code]); }
// Halfway between the values of two neighbouring codes.
float border_below(int code) { return (value_of(code - 1) + value_of(code)) / 2; }

Lanes nearest_value(Lanes x) {
  Lanes value = scale_search::lanes_of(value_of(0));
  for (int code = 1; code < kCodes; ++code)
    value = x > border_below(code) ? scale_search::lanes_of(value_of(code)) : value;
  return value;
}

int nearest_code(float x) {
  int code = 0;
  while (code + 1 < kCodes && x > border_below(code + 1)) ++code;
  return code;
}

// What the extreme of a block becomes in each trial: around the ends of the table.
constexpr std::array kTargets = {-142.0f, -139.0f, -136.0f, -133.0f, -130.0f, -127.0f,
                                 -124.0f, -121.0f, -118.0f, -115.0f, -112.0f, 98.0f,
                                 103.0f,  108.0f,  113.0f,  118.0f,  123.0f,  128.0f};

// x ~ scale * value, x [32] of eight blocks side by side.
Lanes fit(const Lanes* x) {
  Lanes extreme = x[0];
  for (int j = 1; j < kBlock; ++j) {
    const LaneBits further = (x[j] > 0.0f ? x[j] : -x[j]) > (extreme > 0.0f ? extreme : -extreme);
    extreme = further ? x[j] : extreme;
  }
  const LaneBits is_flat = (extreme > 0.0f ? extreme : -extreme) <= 1e-15f;
  const Lanes inverse = is_flat ? Lanes{} : 1.0f / extreme;
  Lanes best{}, best_gain{};
  for (const float target : kTargets) {
    const Lanes inverse_scale = target * inverse;
    Lanes vv{}, xv{};
    for (int j = 0; j < kBlock; ++j) {
      const Lanes value = nearest_value(x[j] * inverse_scale);
      vv += value * value;
      xv += x[j] * value;
    }
    const Lanes scale = xv / vv;
    const Lanes gain = scale * xv;  // how far the squared error falls
    const LaneBits better = gain > best_gain;
    best = better ? scale : best;
    best_gain = better ? gain : best_gain;
  }
  return best;
}

void store(const float* src, float scale, std::byte* dst) {
  BlockIq4Nl block;
  block.d = f32_to_f16(scale);
  const float unit = f16_to_f32(block.d);
  const float inverse = std::fabs(unit) < 1e-30f ? 0.0f : 1.0f / unit;
  for (int j = 0; j < kBlock / 2; ++j) {
    const int low = nearest_code(src[j] * inverse);
    const int high = nearest_code(src[j + kBlock / 2] * inverse);
    block.qs[j] = static_cast<std::uint8_t>(low | high << 4);
  }
  std::memcpy(dst, &block, sizeof(block));
}

}  // namespace

void quantize_iq4_nl(const float* src, std::byte* dst, std::int64_t n) {
  constexpr std::int64_t kGroup = std::int64_t{scale_search::kLanes} * kBlock;
  float values[kGroup];
  for (std::int64_t first = 0; first < n; first += kGroup) {
    const std::int64_t count = std::min(kGroup, n - first);
    std::fill(std::copy_n(src + first, count, values), values + kGroup, 0.0f);
    bool is_too_large[scale_search::kLanes] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::fabs(values[i]) <= kLargest) continue;
      is_too_large[i / kBlock] = true;
      values[i] = 0;
    }
    Lanes x[kBlock];
    scale_search::load_groups<kBlock>(values, x);
    const Lanes scales = fit(x);
    for (std::int64_t b = 0; b < count / kBlock; ++b) {
      const float scale = is_too_large[b] ? kLargest : scales[b];
      store(values + b * kBlock, scale, dst);
      dst += sizeof(BlockIq4Nl);
    }
  }
}

}  // namespace dunlin
