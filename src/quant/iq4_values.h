// What the sixteen codes of IQ4_NL and IQ4_XS stand for: part of GGUF's format, closer together
// near zero, where most weights are.
#pragma once

#include <cstdint>

namespace dunlin {

inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace dunlin
