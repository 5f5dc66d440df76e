#include "kernels/kv_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernels/kv_scale.h"
#include "quant/dequantize.h"

namespace dunlin {
namespace {

// A float of at most 8 bits: sign, exponent, mantissa_bits.
struct SmallFloat {
  int mantissa_bits;
  int bias;
  float largest;
};
constexpr SmallFloat kE4M3 = {3, 7, 448.0f};
constexpr SmallFloat kE5M2 = {2, 15, 57344.0f};

float bounded(float x, float limit) {
  const float below = x < limit ? x : limit;  // NaN too
  return below > -limit ? below : -limit;
}

std::uint8_t narrow(const SmallFloat& format, float x) {
  const float value = bounded(x, format.largest);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 << 7;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const int dropped = 23 - format.mantissa_bits;
  const auto least_normal = static_cast<std::uint32_t>(127 - format.bias + 1) << 23;
  if (magnitude < least_normal) {
    // One unit of a subnormal is 2^(1 - bias - mantissa_bits); adding 1.5 * 2^23 rounds.
    const float unit_inverse = std::ldexp(1.0f, format.bias - 1 + format.mantissa_bits);
    const float units = std::bit_cast<float>(magnitude) * unit_inverse + 12582912.0f - 12582912.0f;
    return static_cast<std::uint8_t>(sign | static_cast<std::uint32_t>(units));
  }
  const std::uint32_t odd = magnitude >> dropped & 1;
  const std::uint32_t rounded = (magnitude + (1u << (dropped - 1)) - 1 + odd) >> dropped;
  const auto rebase = static_cast<std::uint32_t>(127 - format.bias) << format.mantissa_bits;
  return static_cast<std::uint8_t>(sign | (rounded - rebase));
}

float widen(const SmallFloat& format, std::uint8_t bits) {
  const int exponent = (bits & 0x7f) >> format.mantissa_bits;
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  const float size = std::ldexp(static_cast<float>(whole),
                                std::max(exponent, 1) - format.bias - format.mantissa_bits);
  return (bits & 0x80) != 0 ? -size : size;
}

constexpr int kMostChannels = kMostKvChannels;
constexpr float kMostNumber = 1e36f;  // times a rotation's length still a float

// A head's channels as codes, and its groups' scales.
struct HeadCodes {
  std::array<float, kMostChannels> x;
  std::array<std::uint8_t, kMostChannels> codes;
  std::array<std::uint16_t, kMostChannels / 16> words;
};

constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
constexpr float kNothing = 1e-30f;     // less than it has no scale whose inverse is a float

std::uint8_t code_of(float x, float inverse, float zero, float least, float greatest) {
  const float code = (x * inverse + zero) + kRound - kRound;
  return static_cast<std::uint8_t>(std::clamp(code, least, greatest));
}

// Symmetric about 128. The scale is the least bf16 that is enough.
std::uint16_t quantize_int8(const float* x, int n, std::uint8_t* codes) {
  constexpr float kMost = 127;
  float most = 0;
  for (int i = 0; i < n; ++i) most = std::max(most, std::fabs(x[i]));
  const auto wanted = std::bit_cast<std::uint32_t>(most < kNothing ? 0.0f : most / kMost);
  const auto word = static_cast<std::uint16_t>((wanted + 0xffff) >> 16);
  const float inverse = word == 0 ? 0 : 1 / kv_scale(KvFormat::kInt8, word).scale;
  for (int i = 0; i < n; ++i) codes[i] = code_of(x[i], inverse, 128, 1, 255);
  return word;
}

// Between the least and the greatest number, or 0 where that is beyond them. The least scale and
// then the least zero of those that a word can hold that are enough.
std::uint16_t quantize_int4(const float* x, int n, std::uint8_t* codes) {
  constexpr float kMost = 15;
  float least = 0, greatest = 0;
  for (int i = 0; i < n; ++i) least = std::min(least, x[i]), greatest = std::max(greatest, x[i]);
  // A quarter of a code more: the zero is rounded up to quarters.
  const float wanted = (greatest - least) / (kMost - 0.25f);
  const std::uint32_t scale = kv_int4_scale_bits(wanted);
  const float step = kv_scale(KvFormat::kInt4, static_cast<std::uint16_t>(scale << 6)).scale;
  const float inverse = 1 / step;
  const float quarters = std::ceil(-least * inverse * 4);
  const auto word = static_cast<std::uint16_t>(
      scale << 6 | static_cast<std::uint32_t>(std::clamp(quarters, 0.0f, 60.0f)));
  const float zero = kv_scale(KvFormat::kInt4, word).zero;
  for (int i = 0; i < n; ++i) codes[i] = code_of(x[i], inverse, zero, 0, kMost);
  return word;
}

void quantize_head(const KvPart& part, const float* x, HeadCodes& head) {
  DUNLIN_DCHECK(part.channels <= kMostChannels, "a head larger than any model's");
  for (int i = 0; i < part.head_dim; ++i)
    head.x[static_cast<std::size_t>(i)] = bounded(x[i], kMostNumber);
  for (int i = part.head_dim; i < part.channels; ++i) head.x[static_cast<std::size_t>(i)] = 0;
  rotate_channels(head.x.data(), part.head_dim, part.rotation, 1);
  const auto quantize = part.format == KvFormat::kInt8 ? quantize_int8 : quantize_int4;
  for (int g = 0; g < part.num_groups; ++g) {
    const int first = g * part.group;
    head.words[static_cast<std::size_t>(g)] =
        quantize(head.x.data() + first, std::min(part.group, part.channels - first),
                 head.codes.data() + first);
  }
}

std::uint16_t* words_of(const KvPart& part, std::byte* first, int head) {
  return reinterpret_cast<std::uint16_t*>(first + part.scales_at) +
         head * part.num_groups * kKvBlockSize;
}

// Where the code of a channel and token of a head stands: a byte, and for 4 bits which half of it.
struct CodePlace {
  std::int64_t at;
  int shift;
};
CodePlace key_place(const KvPart& part, int channel, int token) {
  if (part.format == KvFormat::kInt8)
    return {(channel / 4 * kKvBlockSize + token) * 4 + channel % 4, 0};
  return {(channel / 8 * kKvBlockSize + token) * 4 + channel % 4, channel / 4 % 2 * 4};
}
CodePlace value_place(const KvPart& part, int channel, int token) {
  if (part.format == KvFormat::kInt8)
    return {(std::int64_t{token} / 4 * part.channels + channel) * 4 + token % 4, 0};
  const std::int64_t row = std::int64_t{token} / 4 * part.channels / 16 + channel / 16;
  return {(row * 8 + channel % 8) * 4 + token % 4, channel / 8 % 2 * 4};
}

template <CodePlace (*kPlace)(const KvPart&, int, int)>
void write_codes(const KvPart& part, std::byte* first, int token, const float* x) {
  HeadCodes head;
  for (int h = 0; h < part.num_heads; ++h) {
    quantize_head(part, x + std::int64_t{h} * part.head_dim, head);
    auto* codes = reinterpret_cast<std::uint8_t*>(first + h * part.head_bytes);
    for (int c = 0; c < part.channels; ++c) {
      const CodePlace place = kPlace(part, c, token);
      const std::uint8_t code = head.codes[static_cast<std::size_t>(c)];
      // The low half is always written first, whole; the high half joins it.
      codes[place.at] = place.shift == 0
                            ? code
                            : static_cast<std::uint8_t>(codes[place.at] | code << place.shift);
    }
    for (int g = 0; g < part.num_groups; ++g)
      words_of(part, first, h)[g * kKvBlockSize + token] = head.words[static_cast<std::size_t>(g)];
  }
}

template <CodePlace (*kPlace)(const KvPart&, int, int)>
void read_codes(const KvPart& part, const std::byte* first, int h, int channel_step, int token_step,
                float* x) {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(first + h * part.head_bytes);
  const std::uint16_t* words = words_of(part, const_cast<std::byte*>(first), h);
  const int mask = (1 << kv_format_info(part.format).bits) - 1;
  std::array<float, kMostChannels> row;
  for (int t = 0; t < kKvBlockSize; ++t) {
    for (int c = 0; c < part.head_dim; ++c) {
      const CodePlace place = kPlace(part, c, t);
      const KvScale scale = kv_scale(part.format, words[c / part.group * kKvBlockSize + t]);
      const auto code = static_cast<float>(codes[place.at] >> place.shift & mask);
      row[static_cast<std::size_t>(c)] = scale.scale * (code - scale.zero);
    }
    rotate_channels(row.data(), part.head_dim, part.rotation,
                    1 / static_cast<float>(part.rotation));
    for (int c = 0; c < part.head_dim; ++c)
      x[c * channel_step + t * token_step] = row[static_cast<std::size_t>(c)];
  }
}

void read_elements(const KvPart& part, const std::byte* first, int head, float* x) {
  const std::int64_t n = std::int64_t{part.head_dim} * kKvBlockSize;
  const std::byte* stored = first + head * part.head_bytes;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(stored);
  switch (part.format) {
    case KvFormat::kF32: return dequantize(DType::kF32, stored, x, n);
    case KvFormat::kF16: return dequantize(DType::kF16, stored, x, n);
    case KvFormat::kBF16: return dequantize(DType::kBF16, stored, x, n);
    case KvFormat::kFp8E4M3: std::transform(bytes, bytes + n, x, fp8_e4m3_to_f32); return;
    case KvFormat::kFp8E5M2: std::transform(bytes, bytes + n, x, fp8_e5m2_to_f32); return;
    default: DUNLIN_CHECK(false, "codes are no elements");
  }
}

void write_fp8(const KvPart& part, std::byte* first, const float* x, std::int64_t step) {
  auto* out = reinterpret_cast<std::uint8_t*>(first);
  const SmallFloat& format = part.format == KvFormat::kFp8E4M3 ? kE4M3 : kE5M2;
  for (int h = 0; h < part.num_heads; ++h, out += part.head_bytes, x += part.head_dim)
    for (int d = 0; d < part.head_dim; ++d) out[d * step] = narrow(format, x[d]);
}

}  // namespace

std::uint8_t f32_to_fp8_e4m3(float x) { return narrow(kE4M3, x); }
std::uint8_t f32_to_fp8_e5m2(float x) { return narrow(kE5M2, x); }
float fp8_e4m3_to_f32(std::uint8_t bits) { return widen(kE4M3, bits); }
float fp8_e5m2_to_f32(std::uint8_t bits) { return widen(kE5M2, bits); }

void rotate_channels(float* x, std::int64_t n, int rotation, float factor) {
  for (std::int64_t first = 0; first < n; first += rotation) {
    float* part = x + first;
    for (int half = 1; half < rotation; half *= 2) {
      for (int i = 0; i < rotation; i += 2 * half) {
        for (int j = i; j < i + half; ++j) {
          const float a = part[j], b = part[j + half];
          part[j] = a + b;
          part[j + half] = a - b;
        }
      }
    }
  }
  if (factor != 1)
    for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

void write_kv_keys(const KvPart& part, std::byte* first, int token, const float* x) {
  if (part.has_codes()) return write_codes<key_place>(part, first, token, x);
  write_fp8(part, first + token, x, kKvBlockSize);
}

void write_kv_values(const KvPart& part, std::byte* first, int token, const float* x) {
  if (part.has_codes()) return write_codes<value_place>(part, first, token, x);
  write_fp8(part, first + std::int64_t{token} * part.head_dim, x, 1);
}

void read_kv_keys(const KvPart& part, const std::byte* first, int head, float* keys) {
  if (part.has_codes()) return read_codes<key_place>(part, first, head, kKvBlockSize, 1, keys);
  read_elements(part, first, head, keys);
}

void read_kv_values(const KvPart& part, const std::byte* first, int head, float* values) {
  if (part.has_codes()) return read_codes<value_place>(part, first, head, 1, part.head_dim, values);
  read_elements(part, first, head, values);
}

}  // namespace dunlin
