#include <bit>
#include <cstdint>

#include "quant/dequantize.h"

namespace dunlin {

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1F, mantissa = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | mantissa << 13);
  if (exponent == 0) {
    // Zero and the subnormals: mantissa * 2^-24, exact in f32.
    const float value = static_cast<float>(mantissa) * 0x1.0p-24f;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent + (127 - 15)) << 23 | mantissa << 13);
}

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {  // NaN: stays one, quiet
    return static_cast<std::uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x3FF));
  }
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;  // from 65520 on, the nearest is infinity
  if (magnitude < 0x38800000u) {
    // Below the smallest normal, 2^-14: adding 2^-14 * 2^10 = 0.5 leaves the count of 2^-24 in the
    // low bits, rounded to nearest even by the addition itself.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3F000000u));
  }
  const std::uint32_t odd = magnitude >> 13 & 1;
  const std::uint32_t rounded = magnitude - (std::uint32_t{127 - 15} << 23) + 0xFFFu + odd;
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

}  // namespace dunlin
