// Philox4x32-10, a counter-based generator (Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011): the number at (key, counter) depends on nothing else, so a draw does not
// depend on how many draws came before it, on the batch, or on the thread.
#pragma once

#include <array>
#include <cstdint>

namespace dunlin {

// The four 32-bit words at `counter` under `key`.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// One uniform in [0, 1) with 53 random bits, a function of (seed, stream, position) only.
// Sampling uses stream = choice index and position = absolute position of the token drawn.
double uniform_at(std::uint64_t seed, std::uint32_t stream, std::uint64_t position);

}  // namespace dunlin
