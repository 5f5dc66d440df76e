// The loops behind machine_limits.h, a table an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dunlin {

struct LimitLoops {
  // Reads n bytes, a multiple of 256, aligned to 64; gives a sum that needs all of them.
  std::uint64_t (*read)(const std::byte* data, std::int64_t n);
  // Run `rounds` rounds on independent chains of sums; give the operations done (two a product).
  // *sink takes a result, so that no compiler drops them.
  std::int64_t (*int8_unsigned)(std::int64_t rounds, std::uint64_t* sink);
  std::int64_t (*int8_signed)(std::int64_t rounds, std::uint64_t* sink);
  std::int64_t (*floats)(std::int64_t rounds, std::uint64_t* sink);
};

extern const LimitLoops portable_limit_loops;
extern const LimitLoops avx2_limit_loops;
extern const LimitLoops avx512_limit_loops;
extern const LimitLoops amx_limit_loops;
extern const LimitLoops neon_limit_loops;

}  // namespace dunlin
