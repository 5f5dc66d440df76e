// PrefixKey: a name for the KV of one full block that means the same in every process: SHA-256 of
// the key of the block before it and of its own tokens, so of the whole prefix. The chain begins
// with the identity of what computes the bits (model, kernels, layout) and the salt, where a
// request has one. Equal keys stand for equal tokens as surely as SHA-256 has no known collision.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "dunlin/types.h"
#include "kv/cache_salt.h"

namespace dunlin {

using PrefixKey = std::array<std::uint8_t, 32>;

// `tokens` holds kBlockSize tokens.
PrefixKey next_prefix_key(const PrefixKey& before, const TokenId* tokens);
// What the first block's key follows.
PrefixKey first_prefix_key(const PrefixKey& identity, const CacheSalt& salt);

std::string to_hex(const PrefixKey& key);
// False where `text` is no 64 lower-case hexadecimal digits.
bool parse_hex(std::string_view text, PrefixKey& key);

}  // namespace dunlin
