// From the bytes of a token to its id: a flat hash table over one block of text. And from a pair of
// ids to their merge.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dunlin/types.h"

namespace dunlin {

// Token texts by id, and a look-up over those that were inserted. Movable, not thread-safe to
// change, thread-safe to read.
class TokenTable {
 public:
  // Room for `num_tokens` texts of `num_bytes` (below 4 GiB) in all; the table never grows.
  TokenTable(std::size_t num_tokens, std::size_t num_bytes);

  // Appends the text of the next id; returns it.
  TokenId add(std::string_view text);
  // Makes `ids` findable, in order. Two ids with one text stop it and come back, as (the one that
  // was there, the later one).
  std::optional<std::pair<TokenId, TokenId>> insert(std::span<const TokenId> ids);

  std::string_view text(TokenId id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(bytes_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }
  TokenId size() const { return static_cast<TokenId>(ends_.size() - 1); }
  std::size_t max_length() const { return max_length_; }  // of an inserted text, bytes

  TokenId find(std::string_view text) const;  // -1: none

  // The same in two steps, so that the memory of many look-ups is fetched at once.
  static std::uint64_t hash(std::string_view text);
  void prefetch(std::uint64_t hash) const {
    __builtin_prefetch(&slots_[static_cast<std::size_t>(hash) & mask_]);
  }
  TokenId find(std::string_view text, std::uint64_t hash) const;

 private:
  TokenId insert_one(TokenId id, std::uint64_t hash);

  struct Slot {
    std::uint32_t tag;  // the hash's upper half
    TokenId id;         // -1: free
  };

  std::string bytes_;
  std::vector<std::uint32_t> ends_;  // [size() + 1]: text of id i is [ends_[i], ends_[i + 1])
  std::vector<Slot> slots_;          // a power of two, at most 2/3 full; linear probing
  std::size_t mask_;
  std::size_t max_length_ = 0;
};

// Which pairs of tokens merge, how early, and into what.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;  // the lowest is merged first; kNone: the pair never merges
    TokenId id;
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  explicit MergeTable(std::size_t num_merges);

  // The first merge of a pair stays. At most `num_merges` insertions.
  void insert(TokenId left, TokenId right, Merge merge);

  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t pair = key(left, right);
    for (std::size_t i = start(pair);; i = (i + 1) & mask_) {
      if (slots_[i].key == pair) return slots_[i].merge;
      if (slots_[i].key == kFree) return {kNone, -1};
    }
  }
  void prefetch(TokenId left, TokenId right) const {
    __builtin_prefetch(&slots_[start(key(left, right))]);
  }

 private:
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge{};
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // ids are not negative

  static std::uint64_t key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  // Multiplication by 2^64 / golden ratio mixes both ids into the upper bits (Knuth, TAOCP 6.4).
  std::size_t start(std::uint64_t pair) const {
    return static_cast<std::size_t>((pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> shift_);
  }

  std::vector<Slot> slots_;
  std::size_t mask_;
  int shift_;
};

}  // namespace dunlin
