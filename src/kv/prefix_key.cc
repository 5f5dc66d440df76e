#include "kv/prefix_key.h"

#include <cstring>

#include "base/sha256.h"

namespace dunlin {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

PrefixKey next_prefix_key(const PrefixKey& before, const TokenId* tokens) {
  char bytes[sizeof(PrefixKey) + kBlockSize * sizeof(TokenId)];
  std::memcpy(bytes, before.data(), before.size());
  std::memcpy(bytes + before.size(), tokens, kBlockSize * sizeof(TokenId));
  return sha256({bytes, sizeof bytes});
}

PrefixKey first_prefix_key(const PrefixKey& identity, const CacheSalt& salt) {
  return salt.is_none() ? identity : next_prefix_key(identity, salt.block());
}

std::string to_hex(const PrefixKey& key) {
  std::string text;
  text.reserve(2 * key.size());
  for (const std::uint8_t byte : key) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool parse_hex(std::string_view text, PrefixKey& key) {
  if (text.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto high = kDigits.find(text[2 * i]);
    const auto low = kDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    key[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

}  // namespace dunlin
