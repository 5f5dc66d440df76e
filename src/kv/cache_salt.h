// CacheSalt: what keeps requests of different tenants apart in the prefix cache. In the index it
// stands as one more block between the root and a prompt's first one.
//
// That block holds the SHA-256 of the salt's bytes, 16 bits a token, as negative ids, which no
// prompt has. So two requests share blocks only where all 256 bits are equal and every token is:
// to read another's cache through a salt of one's own takes a collision of SHA-256. A table of
// roots by a 64-bit hash would do with a collision that a laptop finds. All salts take equally much
// room, and the disk tier stores none in clear.
#pragma once

#include <array>
#include <string_view>

#include "dunlin/types.h"
#include "kv/kv_layout.h"

namespace dunlin {

class CacheSalt {
 public:
  CacheSalt() = default;                      // none: the common tree
  explicit CacheSalt(std::string_view salt);  // "" is none

  bool is_none() const { return block_[0] == 0; }
  const TokenId* block() const { return block_.data(); }  // [kBlockSize]
  bool operator==(const CacheSalt&) const = default;

 private:
  std::array<TokenId, kBlockSize> block_ = {};
};

}  // namespace dunlin
