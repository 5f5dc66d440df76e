#include "text/token_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace dunlin {

TokenTable::TokenTable(std::size_t num_tokens, std::size_t num_bytes)
    : slots_(std::bit_ceil(2 * num_tokens + 1), Slot{0, -1}), mask_(slots_.size() - 1) {
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

TokenId TokenTable::insert(TokenId id) {
  const std::string_view inserted = text(id);
  const std::uint64_t h = hash(inserted);
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
