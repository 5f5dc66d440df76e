#include "tensor/kv_format.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace dunlin {
namespace {

constexpr std::array<KvFormatInfo, kNumKvFormats> kInfo = {{
    {"f32", 32, 0, 0},
    {"f16", 16, 0, 0},
    {"bf16", 16, 0, 0},
    {"fp8_e4m3", 8, 0, 0},
    {"fp8_e5m2", 8, 0, 0},
    {"int8", 8, 64, 64},
    {"int4", 4, 32, 64},
}};

constexpr int kMaxRotation = 64;
constexpr int kChannelUnit = 16;
constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kWordBytes = 2;

std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

KvPart make_part(KvFormat format, int group, int num_heads, int head_dim, int values_dim) {
  KvPart part;
  part.format = format;
  part.num_heads = num_heads;
  part.head_dim = part.channels = head_dim;
  part.group = group;
  if (part.has_codes()) {
    part.channels = static_cast<int>(round_up(head_dim, kChannelUnit));
    part.num_groups = (part.channels + group - 1) / group;
    const int common = std::gcd(head_dim, values_dim);
    part.rotation = std::min(common & -common, kMaxRotation);
  }
  part.head_bytes = std::int64_t{part.channels} * kKvBlockSize * kv_format_info(format).bits / 8;
  part.scales_at = num_heads * part.head_bytes;
  part.block_bytes = part.scales_at;
  if (part.has_codes()) {
    const std::int64_t words = std::int64_t{num_heads} * part.num_groups * kKvBlockSize;
    part.scales_at = round_up(part.scales_at, kLineBytes);
    part.block_bytes = round_up(part.scales_at + words * kWordBytes, kLineBytes);
  }
  return part;
}

}  // namespace

const KvFormatInfo& kv_format_info(KvFormat format) {
  return kInfo[static_cast<std::size_t>(format)];
}

std::optional<KvFormat> find_kv_format(std::string_view name) {
  for (std::size_t i = 0; i < kInfo.size(); ++i)
    if (kInfo[i].name == name) return static_cast<KvFormat>(i);
  return std::nullopt;
}

std::vector<std::string> kv_format_names() {
  std::vector<std::string> names;
  for (const KvFormatInfo& info : kInfo) names.emplace_back(info.name);
  return names;
}

KvPart key_part(KvFormat format, int num_heads, int head_dim, int values_dim) {
  return make_part(format, kv_format_info(format).key_group, num_heads, head_dim, values_dim);
}

KvPart value_part(KvFormat format, int num_heads, int head_dim) {
  return make_part(format, kv_format_info(format).value_group, num_heads, head_dim, 0);
}

}  // namespace dunlin
