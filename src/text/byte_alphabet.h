// Text as one byte for each character, for regular expressions over bytes. ASCII stands for itself;
// the other code points fall into classes, bytes from 0x80 on, such that no set of the expressions
// tells two members of a class apart. An expression then matches the bytes exactly where it
// matches the text, every class of characters is a 256-bit map, and the matcher needs no Unicode
// tables of its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "dunlin/status.h"
#include "text/code_point_set.h"

namespace dunlin {

class ByteAlphabet {
 public:
  // kInvalidArgument where the sets need more than 128 classes or are more than 64.
  static Result<ByteAlphabet> make(std::span<const CodePointSet> sets);

  std::uint8_t byte_of(char32_t code_point) const {
    return blocks_[block_of_[code_point >> 8]][code_point & 0xFF];
  }

  // A class of PCRE2 that matches the bytes of sets[set_idx].
  std::string class_of_set(std::size_t set_idx) const;

  // One byte for each character of `text`, which must be valid UTF-8.
  std::string translate(std::string_view text) const;

 private:
  using Block = std::array<std::uint8_t, 256>;
  static constexpr std::size_t kNumBlocks = (kMaxCodePoint + 1) / 256;

  struct Interval {
    char32_t end;  // one behind the last
    std::uint8_t byte;
  };
  void build_blocks(std::span<const Interval> intervals);

  std::vector<std::array<bool, 256>> members_;  // [num_sets] which bytes belong to the set
  std::vector<Block> blocks_;
  std::array<std::uint16_t, kNumBlocks> block_of_{};
};

}  // namespace dunlin
