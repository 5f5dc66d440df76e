#include "sampling/logits_processors.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace dunlin {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

}  // namespace

TokenCounts::TokenCounts(std::span<const TokenId> prompt, int max_output_tokens) {
  const std::size_t room = prompt.size() + static_cast<std::size_t>(max_output_tokens);
  rehash(std::bit_ceil(2 * room + 2));
  for (const TokenId token : prompt) find_or_add(token);
  entries_.reserve(entries_.size() + static_cast<std::size_t>(max_output_tokens));
}

std::size_t TokenCounts::bucket_of(TokenId token) const {
  const auto spread = static_cast<std::uint32_t>(token) * 0x9E3779B1u;
  return (spread >> 7) & (buckets_.size() - 1);
}

TokenCounts::Entry& TokenCounts::find_or_add(TokenId token) {
  if (2 * (entries_.size() + 1) > buckets_.size()) rehash(2 * buckets_.size() + 2);
  std::size_t bucket = bucket_of(token);
  for (; buckets_[bucket] >= 0; bucket = (bucket + 1) & (buckets_.size() - 1)) {
    Entry& entry = entries_[static_cast<std::size_t>(buckets_[bucket])];
    if (entry.token == token) return entry;
  }
  buckets_[bucket] = static_cast<std::int32_t>(entries_.size());
  entries_.push_back({token, 0});
  return entries_.back();
}

void TokenCounts::rehash(std::size_t num_buckets) {
  buckets_.assign(std::bit_ceil(num_buckets), -1);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t bucket = bucket_of(entries_[i].token);
    while (buckets_[bucket] >= 0) bucket = (bucket + 1) & (buckets_.size() - 1);
    buckets_[bucket] = static_cast<std::int32_t>(i);
  }
}

bool has_penalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
         params.frequency_penalty != 0.0f;
}

void apply_logit_bias(std::span<const LogitBias> bias, std::span<float> row) {
  for (const LogitBias& entry : bias) row[static_cast<std::size_t>(entry.token)] += entry.bias;
}

void apply_penalties(const SamplingParams& params, const TokenCounts& counts,
                     std::span<float> row) {
  const float repetition = params.repetition_penalty;
  for (const TokenCounts::Entry& entry : counts.entries()) {
    float& x = row[static_cast<std::size_t>(entry.token)];
    x = x > 0 ? x / repetition : x * repetition;
    if (entry.output_count == 0) continue;
    x -= params.frequency_penalty * static_cast<float>(entry.output_count);
    x -= params.presence_penalty;
  }
}

void mask_tokens(std::span<const TokenId> forbidden, std::span<float> row) {
  for (const TokenId token : forbidden) row[static_cast<std::size_t>(token)] = kMinusInf;
}

void apply_bitmask(std::span<const std::uint32_t> bitmask, std::span<float> row) {
  for (std::size_t begin = 0; begin < row.size(); begin += 32) {
    const std::uint32_t word = bitmask[begin / 32];
    if (word == 0xFFFFFFFFu) continue;
    const std::size_t count = std::min<std::size_t>(32, row.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      if ((word >> i & 1) == 0) row[begin + i] = kMinusInf;
    }
  }
}

}  // namespace dunlin
