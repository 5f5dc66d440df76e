#include "kv/kv_compaction.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace dunlin {
namespace {

// Some pieces of a token's head, `bytes` long and `step` bytes apart, from `at` on.
struct Pieces {
  std::int64_t at, bytes, step, num;
};

Pieces key_pieces(const KvPart& part, int token) {
  const std::int64_t bytes = part.has_codes() ? 4 : part.head_bytes / part.channels / kKvBlockSize;
  return {token * bytes, bytes, kKvBlockSize * bytes, part.head_bytes / (kKvBlockSize * bytes)};
}

// Codes of values lie in quarters of a block, four tokens side by side.
Pieces value_pieces(const KvPart& part, int token) {
  const std::int64_t bytes = part.head_bytes / kKvBlockSize;
  if (!part.has_codes()) return {token * bytes, bytes, bytes, 1};
  return {token / 4 * (part.head_bytes / 4) + token % 4, 1, 4, bytes};
}

void copy_pieces(const std::byte* from, const Pieces& source, std::byte* to, const Pieces& target) {
  from += source.at;
  to += target.at;
  for (std::int64_t i = 0; i < source.num; ++i, from += source.step, to += target.step)
    std::memcpy(to, from, static_cast<std::size_t>(source.bytes));
}

void copy_words(const KvPart& part, int kv_head, const std::byte* from, int source, std::byte* to,
                int target) {
  if (!part.has_codes()) return;
  constexpr std::int64_t kWord = sizeof(std::uint16_t);
  const std::int64_t head =
      part.scales_at + std::int64_t{kv_head} * part.num_groups * kKvBlockSize * kWord;
  const auto of_token = [&](int token) {
    return Pieces{head + token * kWord, kWord, kKvBlockSize * kWord, part.num_groups};
  };
  copy_pieces(from, of_token(source), to, of_token(target));
}

}  // namespace

std::span<const std::int32_t> choose_slots(const KvCompaction& compaction,
                                           std::span<const float> votes,
                                           KvCompactionScratch& scratch) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const auto num = static_cast<std::size_t>(compaction.from);
  scratch.scores.resize(num);
  scratch.order.resize(num);
  const int reach = compaction.pool / 2;
  for (int i = 0; i < compaction.from; ++i) {
    float most = kNone;
    const int end = std::min(compaction.from, i + reach + 1);
    for (int j = std::max(0, i - reach); j < end; ++j)
      most = votes[static_cast<std::size_t>(j)] > most ? votes[static_cast<std::size_t>(j)] : most;
    scratch.scores[static_cast<std::size_t>(i)] = most;
    scratch.order[static_cast<std::size_t>(i)] = i;
  }
  const auto first = scratch.order.begin();
  std::nth_element(first, first + compaction.to, scratch.order.end(),
                   [&](std::int32_t a, std::int32_t b) {
                     const float score_a = scratch.scores[static_cast<std::size_t>(a)];
                     const float score_b = scratch.scores[static_cast<std::size_t>(b)];
                     return score_a != score_b ? score_a > score_b : a < b;
                   });
  std::sort(first, first + compaction.to);
  return {scratch.order.data(), static_cast<std::size_t>(compaction.to)};
}

void move_token(const PagedKvLayer& layer, int kv_head, std::int64_t from, std::int64_t to) {
  const std::byte* source = layer.base + from / kKvBlockSize * layer.block_stride;
  std::byte* target = layer.base + to / kKvBlockSize * layer.block_stride;
  const int from_token = static_cast<int>(from % kKvBlockSize);
  const int to_token = static_cast<int>(to % kKvBlockSize);
  const auto move_part = [&](const KvPart& part, std::int64_t offset, auto pieces) {
    const std::int64_t head = offset + kv_head * part.head_bytes;
    copy_pieces(source + head, pieces(part, from_token), target + head, pieces(part, to_token));
    copy_words(part, kv_head, source + offset, from_token, target + offset, to_token);
  };
  move_part(layer.k, layer.k_offset, key_pieces);
  if (!layer.values_in_keys) move_part(layer.v, layer.v_offset, value_pieces);
}

void compact_head(const PagedKvLayer& layer, int kv_head, const std::int32_t* blocks,
                  const KvCompaction& compaction, std::span<float> votes,
                  KvCompactionScratch& scratch) {
  const auto [from, to, pool] = compaction;
  const std::span<const std::int32_t> stays = choose_slots(compaction, votes, scratch);
  const auto slot = [blocks](int i) {
    return std::int64_t{blocks[i / kKvBlockSize]} * kKvBlockSize + i % kKvBlockSize;
  };
  // As many slots of the first `to` are left as tokens come from behind them.
  auto next = std::lower_bound(stays.begin(), stays.end(), to);
  auto in_place = stays.begin();
  for (int i = 0; i < to && next != stays.end(); ++i) {
    if (*in_place == i) {
      ++in_place;
      continue;
    }
    move_token(layer, kv_head, slot(*next), slot(i));
    votes[static_cast<std::size_t>(i)] = votes[static_cast<std::size_t>(*next)];
    ++next;
  }
  const auto end = std::copy(votes.begin() + from, votes.end(), votes.begin() + to);
  std::fill(end, votes.end(), 0.0f);
}

}  // namespace dunlin
