// Base64 (RFC 4648, section 4, with padding).
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace dunlin {

std::string base64(std::span<const std::byte> bytes);

}  // namespace dunlin
