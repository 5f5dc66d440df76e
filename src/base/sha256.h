// SHA-256 (FIPS 180-4), for the layers that stand on no library.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dunlin {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);

}  // namespace dunlin
