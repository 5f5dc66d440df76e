// How keys and values are stored in the cache: each format's facts, once, and the layout of keys
// or values in a block of 16 tokens. Element formats round each number by itself. Code formats
// keep an integer a channel, and a word of 16 bits for each token, head and group of channels:
//
//   x = scale * (code - zero)       int8: the word is scale in bf16, and zero is 128
//                                   int4: 10 bits of scale, 6 of zero in quarters of a code
//
// where x is the head's vector after a Hadamard transform of each `rotation` channels, which
// spreads outliers evenly (Ashkboos et al., "QuaRot", 2024): H k is stored, attention takes
// H q / rotation, so that products are those of k and q, and outputs are turned back.
//
// docs/design/10-kv-cache-formats.md says why, and what each format costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dunlin {

inline constexpr int kKvBlockSize = 16;  // tokens a block

enum class KvFormat : std::uint8_t { kF32, kF16, kBF16, kFp8E4M3, kFp8E5M2, kInt8, kInt4 };
inline constexpr int kNumKvFormats = static_cast<int>(KvFormat::kInt4) + 1;

struct KvFormatInfo {
  std::string_view name;  // as users write it
  int bits;               // of an element or a code
  int key_group;          // channels that share a scale; 0: an element format
  int value_group;
};

const KvFormatInfo& kv_format_info(KvFormat format);
std::optional<KvFormat> find_kv_format(std::string_view name);
std::vector<std::string> kv_format_names();

// Of a cache: keys and values apart. Implicit from one format for both.
struct KvFormats {
  KvFormat k = KvFormat::kF16, v = KvFormat::kF16;

  KvFormats() = default;
  KvFormats(KvFormat both) : k(both), v(both) {}
  KvFormats(KvFormat keys, KvFormat values) : k(keys), v(values) {}
  bool operator==(const KvFormats&) const = default;
};

// The keys or the values of one layer in a block. First the heads' elements or codes, one head
// behind the other, then the scale words [num_heads, num_groups, 16]; both begin at multiples of
// 64 bytes of the part where there are codes.
//
//                  keys of a head                          values of a head
//   elements       [head_dim, 16 tokens]                   [16 tokens, head_dim]
//   int8           [channels / 4, 16 tokens, 4 channels]   [4, channels, 4 tokens]
//   int4           [channels / 8, 16 tokens, 4 bytes]      [4, channels / 16, 8, 4 tokens]
//
// Code formats pad a head to `channels`, a multiple of 16. Byte j of an int4 key holds channels
// 8i + j (low bits) and 8i + 4 + j; that of an int4 value channels 16i + j and 16i + 8 + j. No two
// tokens share a byte.
struct KvPart {
  KvFormat format = KvFormat::kF16;
  int num_heads = 0;
  int head_dim = 0;
  int channels = 0;              // head_dim, padded where there are codes
  int group = 0;                 // channels of a scale; 0: none
  int num_groups = 0;            // scales of a head and token
  int rotation = 1;              // channels of a Hadamard transform, a power of two
  std::int64_t head_bytes = 0;   // elements or codes of a head
  std::int64_t scales_at = 0;    // from the part's first byte
  std::int64_t block_bytes = 0;  // of all heads, scales too; a multiple of 16

  bool has_codes() const { return group != 0; }
};

// values_dim: the first so many channels of keys are values too, and rotated apart from the
// others; 0: none are.
KvPart key_part(KvFormat format, int num_heads, int head_dim, int values_dim = 0);
KvPart value_part(KvFormat format, int num_heads, int head_dim);

}  // namespace dunlin
