#include "kv/cache_salt.h"

#include "base/sha256.h"

namespace dunlin {

CacheSalt::CacheSalt(std::string_view salt) {
  if (salt.empty()) return;
  const auto digest = sha256(salt);
  static_assert(sizeof digest == 2 * kBlockSize);
  for (std::size_t i = 0; i < block_.size(); ++i)
    block_[i] = -1 - (digest[2 * i] << 8 | digest[2 * i + 1]);
}

}  // namespace dunlin
