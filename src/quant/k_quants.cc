#include "quant/k_quants.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/scale_search.h"

namespace dunlin {
namespace {

using scale_search::Lanes;

constexpr int kBlock = 256;
constexpr std::uint16_t kInfinity = 0x7C00;

// Outside of it sums of squares leave the floats, and no scale in f16 would do.
constexpr float kLargest = 1e15f;

bool is_too_large(const float* src) {
  return std::any_of(src, src + kBlock, [](float x) { return !(std::fabs(x) <= kLargest); });
}

// As std::clamp, but of what is no number `high`: a scale may have overflowed, and casts want
// numbers.
float within(float x, float low, float high) { return std::max(low, std::min(high, x)); }

// The whole numbers nearest to values / unit, from min to max.
template <int kGroups>
void to_units(const float* values, float unit, int min, int max, int* out) {
  for (int g = 0; g < kGroups; ++g) {
    const float units = unit == 0 ? 0.0f : std::nearbyint(values[g] / unit);
    out[g] = static_cast<int>(within(units, static_cast<float>(min), static_cast<float>(max)));
  }
}

// codes [256] = the nearest to (src - min) / scale of the group.
template <int kGroups>
void to_codes(const float* src, const float* scales, const float* mins, int min_code, int max_code,
              std::uint8_t* codes) {
  constexpr int kSize = kBlock / kGroups;
  const auto low = static_cast<float>(min_code), high = static_cast<float>(max_code);
  for (int g = 0; g < kGroups; ++g) {
    const float inverse = std::fabs(scales[g]) < 1e-30f ? 0.0f : 1.0f / scales[g];
    for (int j = kSize * g; j < kSize * (g + 1); ++j) {
      const float units = within((src[j] - mins[g]) * inverse, low, high);
      // As scale_search::nearest, from min_code up.
      codes[j] =
          static_cast<std::uint8_t>(static_cast<int>((units + 0x1.8p23f) - 0x1.8p23f) - min_code);
    }
  }
}

// A block of groups with scale and minimum, both whole multiples of the block's.
template <int kGroups>
struct AffineBlock {
  std::uint16_t d = 0, dmin = 0;
  int scales[kGroups] = {}, mins[kGroups] = {};
  std::uint8_t codes[kBlock] = {};

  AffineBlock(const float* src, int max_code, int max_units) {
    if (is_too_large(src)) {
      d = kInfinity;
      return;
    }
    constexpr int kSize = kBlock / kGroups;
    float scale[kGroups], min[kGroups];
    for (int first = 0; first < kGroups; first += scale_search::kLanes) {
      Lanes x[kSize];
      scale_search::load_groups<kSize>(src + first * kSize, x);
      const auto fit = scale_search::fit_affine<kSize>(x, static_cast<float>(max_code));
      for (int g = 0; g < scale_search::kLanes; ++g) {
        scale[first + g] = fit.scale[g];
        min[first + g] = -fit.min[g];
      }
    }
    const auto units = static_cast<float>(max_units);
    d = f32_to_f16(*std::max_element(scale, scale + kGroups) / units);
    dmin = f32_to_f16(*std::max_element(min, min + kGroups) / units);
    const float unit = f16_to_f32(d), min_unit = f16_to_f32(dmin);
    to_units<kGroups>(scale, unit, 0, max_units, scales);
    to_units<kGroups>(min, min_unit, 0, max_units, mins);
    for (int g = 0; g < kGroups; ++g) {
      scale[g] = unit * static_cast<float>(scales[g]);
      min[g] = -min_unit * static_cast<float>(mins[g]);
    }
    to_codes<kGroups>(src, scale, min, 0, max_code, codes);
  }
};

// A block of 16 groups with a scale alone, from -max_units to max_units - 1 of the block's.
struct SymmetricBlock {
  static constexpr int kGroups = 16, kSize = kBlock / kGroups;
  std::uint16_t d = 0;
  int scales[kGroups] = {};
  std::uint8_t codes[kBlock] = {};  // from 0 on

  SymmetricBlock(const float* src, int half, int max_units) {
    if (is_too_large(src)) {
      d = kInfinity;
      return;
    }
    float scale[kGroups];
    for (int first = 0; first < kGroups; first += scale_search::kLanes) {
      Lanes x[kSize];
      scale_search::load_groups<kSize>(src + first * kSize, x);
      const Lanes fit = scale_search::fit_symmetric<kSize>(x, static_cast<float>(half));
      for (int g = 0; g < scale_search::kLanes; ++g) scale[first + g] = fit[g];
    }
    const float furthest = *std::max_element(
        scale, scale + kGroups, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    d = f32_to_f16(furthest / static_cast<float>(-max_units));
    const float unit = f16_to_f32(d), mins[kGroups] = {};
    to_units<kGroups>(scale, unit, -max_units, max_units - 1, scales);
    for (int g = 0; g < kGroups; ++g) scale[g] = unit * static_cast<float>(scales[g]);
    to_codes<kGroups>(src, scale, mins, -half, half - 1, codes);
  }
};

std::uint8_t byte(int value) { return static_cast<std::uint8_t>(value); }

// Scales and minima in quant/k_scales.h's twelve bytes.
void store_k_scales(const int* scales, const int* mins, std::uint8_t* bytes) {
  for (int g = 0; g < 4; ++g) {
    bytes[g] = byte(scales[g] | (scales[g + 4] >> 4) << 6);
    bytes[g + 4] = byte(mins[g] | (mins[g + 4] >> 4) << 6);
    bytes[g + 8] = byte((scales[g + 4] & 0xF) | (mins[g + 4] & 0xF) << 4);
  }
}

// Of each 128 codes the bits `shift` and `shift + 1` of elements l, l + 32, l + 64, l + 96 in byte
// l of 32.
void store_pairs(const std::uint8_t* codes, int shift, std::uint8_t* qs) {
  for (int h = 0; h < kBlock; h += 128) {
    for (int l = 0; l < 32; ++l) {
      int pairs = 0;
      for (int k = 0; k < 4; ++k) pairs |= (codes[h + 32 * k + l] >> shift & 3) << (2 * k);
      qs[h / 4 + l] = byte(pairs);
    }
  }
}

// Bit `shift` of element 32 b + l in bit b of byte l.
void store_bits(const std::uint8_t* codes, int shift, std::uint8_t* bytes) {
  for (int l = 0; l < 32; ++l) {
    int bits = 0;
    for (int b = 0; b < 8; ++b) bits |= (codes[32 * b + l] >> shift & 1) << b;
    bytes[l] = byte(bits);
  }
}

// Of each 2 * kStride codes the low four bits of elements l and l + kStride in byte l.
template <int kStride>
void store_nibbles(const std::uint8_t* codes, std::uint8_t* qs) {
  for (int p = 0; p < kBlock; p += 2 * kStride)
    for (int l = 0; l < kStride; ++l)
      qs[p / 2 + l] = byte((codes[p + l] & 0xF) | (codes[p + kStride + l] & 0xF) << 4);
}

}  // namespace

void quantize_block(const float* src, BlockQ2K& block) {
  const AffineBlock<16> found(src, 3, 15);
  block.d = found.d;
  block.dmin = found.dmin;
  for (int g = 0; g < 16; ++g) block.scales[g] = byte(found.scales[g] | found.mins[g] << 4);
  store_pairs(found.codes, 0, block.qs);
}

void quantize_block(const float* src, BlockQ3K& block) {
  const SymmetricBlock found(src, 4, 32);
  block.d = found.d;
  std::memset(block.scales, 0, sizeof(block.scales));
  for (int g = 0; g < 16; ++g) {
    const int scale = found.scales[g] + 32;
    std::uint8_t& low = block.scales[g % 8];
    std::uint8_t& high = block.scales[8 + g % 4];
    low = byte(low | (scale & 0xF) << (g / 8 * 4));
    high = byte(high | (scale >> 4) << (g / 4 * 2));
  }
  store_pairs(found.codes, 0, block.qs);
  store_bits(found.codes, 2, block.hmask);
}

void quantize_block(const float* src, BlockQ4K& block) {
  const AffineBlock<8> found(src, 15, 63);
  block.d = found.d;
  block.dmin = found.dmin;
  store_k_scales(found.scales, found.mins, block.scales);
  store_nibbles<32>(found.codes, block.qs);
}

void quantize_block(const float* src, BlockQ5K& block) {
  const AffineBlock<8> found(src, 31, 63);
  block.d = found.d;
  block.dmin = found.dmin;
  store_k_scales(found.scales, found.mins, block.scales);
  store_nibbles<32>(found.codes, block.qs);
  store_bits(found.codes, 4, block.qh);
}

void quantize_block(const float* src, BlockQ6K& block) {
  const SymmetricBlock found(src, 32, 128);
  block.d = found.d;
  for (int g = 0; g < 16; ++g) block.scales[g] = static_cast<std::int8_t>(found.scales[g]);
  store_nibbles<64>(found.codes, block.ql);
  store_pairs(found.codes, 4, block.qh);
}

}  // namespace dunlin
