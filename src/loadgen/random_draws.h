// Draws of a workload: each is a function of (seed, stream, index) alone, so request 7 is the same
// whatever came before it.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/rng.h"

namespace dunlin::loadgen {

// What a number is for; prompts take the streams from kPrompts on.
enum class Draw : std::uint32_t { kArrival, kPromptLen, kOutputLen, kShuffle, kPrefix, kLeave };
inline constexpr std::uint32_t kPrefixes = 1u << 16;
inline constexpr std::uint32_t kPrompts = 1u << 20;

// Whole, from `least` to `most`, both included.
inline int draw_between(std::uint64_t seed, std::uint32_t stream, std::uint64_t index, int least,
                        int most) {
  const double span = static_cast<double>(most) - least + 1;
  return least + static_cast<int>(uniform_at(seed, stream, index) * span);
}
inline int draw_between(std::uint64_t seed, Draw draw, std::uint64_t index, int least, int most) {
  return draw_between(seed, static_cast<std::uint32_t>(draw), index, least, most);
}

// Exponential with mean 1.
inline double draw_exponential(std::uint64_t seed, Draw draw, std::uint64_t index) {
  return -std::log1p(-uniform_at(seed, static_cast<std::uint32_t>(draw), index));
}

// Normal with mean 0 and variance 1 (Box and Muller).
inline double draw_normal(std::uint64_t seed, Draw draw, std::uint64_t index) {
  constexpr double kTurn = 6.283185307179586;
  const auto stream = static_cast<std::uint32_t>(draw);
  const double radius = std::sqrt(-2 * std::log1p(-uniform_at(seed, stream, 2 * index)));
  return radius * std::cos(kTurn * uniform_at(seed, stream, 2 * index + 1));
}

}  // namespace dunlin::loadgen
