#include "text/token_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace dunlin {

TokenTable::TokenTable(std::size_t num_tokens, std::size_t num_bytes)
    : slots_(std::bit_ceil(num_tokens + num_tokens / 2 + 2), Slot{0, -1}),
      mask_(slots_.size() - 1) {
  bytes_.reserve(num_bytes);
  ends_.reserve(num_tokens + 1);
  ends_.push_back(0);
}

TokenId TokenTable::add(std::string_view text) {
  bytes_.append(text);
  ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  return size() - 1;
}

std::uint64_t TokenTable::hash(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::optional<std::pair<TokenId, TokenId>> TokenTable::insert(std::span<const TokenId> ids) {
  // A batch at a time, so that the memory of its slots is fetched while others are hashed.
  std::array<std::uint64_t, 32> hashes;
  for (std::size_t start = 0; start < ids.size(); start += hashes.size()) {
    const std::size_t count = std::min(hashes.size(), ids.size() - start);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash(text(ids[start + i]));
      prefetch(hashes[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const TokenId twin = insert_one(ids[start + i], hashes[i]);
      if (twin >= 0) return std::pair(twin, ids[start + i]);
    }
  }
  return std::nullopt;
}

// Gives -1, or the id that has the same text already.
TokenId TokenTable::insert_one(TokenId id, std::uint64_t h) {
  const std::string_view inserted = text(id);
  const auto tag = static_cast<std::uint32_t>(h >> 32);
  std::size_t i = static_cast<std::size_t>(h) & mask_;
  for (; slots_[i].id >= 0; i = (i + 1) & mask_) {
    if (slots_[i].tag == tag && text(slots_[i].id) == inserted) return slots_[i].id;
  }
  slots_[i] = {tag, id};
  max_length_ = std::max(max_length_, inserted.size());
  return -1;
}

TokenId TokenTable::find(std::string_view wanted) const {
  return wanted.size() > max_length_ ? -1 : find(wanted, hash(wanted));
}

TokenId TokenTable::find(std::string_view wanted, std::uint64_t h) const {
  const auto tag = static_cast<std::uint32_t>(h >> 32);
  for (std::size_t i = static_cast<std::size_t>(h) & mask_;; i = (i + 1) & mask_) {
    if (slots_[i].id < 0) return -1;
    if (slots_[i].tag == tag && text(slots_[i].id) == wanted) return slots_[i].id;
  }
}

MergeTable::MergeTable(std::size_t num_merges)
    : slots_(std::bit_ceil(num_merges + num_merges / 2 + 2)),
      mask_(slots_.size() - 1),
      shift_(64 - std::countr_zero(slots_.size())) {}

void MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  DUNLIN_DCHECK(left >= 0 && right >= 0, "ids must be known");
  const std::uint64_t pair = key(left, right);
  for (std::size_t i = start(pair);; i = (i + 1) & mask_) {
    if (slots_[i].key == pair) return;
    if (slots_[i].key == kFree) {
      slots_[i] = {pair, merge};
      return;
    }
  }
}

}  // namespace dunlin
