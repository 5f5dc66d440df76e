// Numbers that depend on where they are drawn alone: (seed, stream, item) and how many came before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/rng.h"

namespace dunlin::eval {

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t stream, std::uint64_t item)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{static_cast<std::uint32_t>(item), static_cast<std::uint32_t>(item >> 32), stream,
                 0} {}

  // In [0, n), as even as 32 bits make it; n at least 1.
  std::uint32_t below(std::size_t n) {
    const std::uint32_t word = philox4x32(counter_, key_)[0];
    ++counter_[3];
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * n) >> 32);
  }
  std::string_view one_of(std::span<const std::string_view> words) {
    return words[below(words.size())];
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
};

}  // namespace dunlin::eval
