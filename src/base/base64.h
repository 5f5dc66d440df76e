// Base64 (RFC 4648, section 4, with padding).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dunlin {

std::string base64(std::span<const std::byte> bytes);

// The bytes; nullopt where a character is no digit. Padding may be missing.
std::optional<std::string> decode_base64(std::string_view encoded);

}  // namespace dunlin
