// The twelve bytes of Q4_K and Q5_K that hold a six-bit scale s and minimum m of eight groups.
//   group g < 4: s is the low six bits of byte g, m those of byte g + 4
//   group g > 3: the low four bits of s and m are the low and high half of byte g + 4, their high
//                two bits the top bits of bytes g - 4 (s) and g (m)
#pragma once

#include <cstdint>

namespace dunlin {

struct KScale {
  int scale;
  int min;
};

inline KScale k_scale(const std::uint8_t* bytes, int g) {
  if (g < 4) return {bytes[g] & 63, bytes[g + 4] & 63};
  return {(bytes[g + 4] & 0xF) | (bytes[g - 4] >> 6) << 4, (bytes[g + 4] >> 4) | (bytes[g] >> 6)
                                                                                     << 4};
}

}  // namespace dunlin
