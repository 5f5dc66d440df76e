#include "text/byte_alphabet.h"

#include <fmt/format.h>

#include <algorithm>

namespace dunlin {

Result<ByteAlphabet> ByteAlphabet::make(std::span<const CodePointSet> sets) {
  constexpr std::size_t kMaxSets = 64, kMaxClasses = 128;
  if (sets.size() > kMaxSets) return invalid("expressions with more than 64 character sets");
  ByteAlphabet out;
  out.members_.resize(sets.size());

  // Between two borders of any set, all code points belong to the same sets.
  std::vector<char32_t> borders = {0x80, kMaxCodePoint + 1};
  for (std::size_t s = 0; s < sets.size(); ++s) {
    for (const CodePointSet::Range& range : sets[s].ranges()) {
      if (range.first > 0x80) borders.push_back(range.first);
      if (range.last >= 0x80) borders.push_back(range.last + 1);
    }
    for (char32_t c = 0; c < 0x80; ++c) out.members_[s][c] = sets[s].contains(c);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());

  std::vector<Interval> intervals;
  std::vector<std::uint64_t> classes;  // the sets that members of class i belong to, as bits
  std::vector<std::size_t> next_range(sets.size());
  for (std::size_t b = 0; b + 1 < borders.size(); ++b) {
    std::uint64_t memberships = 0;
    for (std::size_t s = 0; s < sets.size(); ++s) {
      const auto ranges = sets[s].ranges();
      std::size_t& r = next_range[s];
      while (r < ranges.size() && ranges[r].last < borders[b]) ++r;
      if (r < ranges.size() && ranges[r].first <= borders[b]) memberships |= std::uint64_t{1} << s;
    }
    const auto found = std::find(classes.begin(), classes.end(), memberships);
    const std::size_t class_idx = static_cast<std::size_t>(found - classes.begin());
    if (found == classes.end()) {
      if (classes.size() == kMaxClasses) return invalid("expressions with too many character sets");
      classes.push_back(memberships);
      for (std::size_t s = 0; s < sets.size(); ++s) {
        out.members_[s][0x80 + class_idx] = (memberships >> s & 1) != 0;
      }
    }
    intervals.push_back({borders[b + 1], static_cast<std::uint8_t>(0x80 + class_idx)});
  }
  out.build_blocks(intervals);
  return out;
}

void ByteAlphabet::build_blocks(std::span<const Interval> intervals) {
  std::array<int, 256> uniform;  // block that is all of one byte, -1: none yet
  uniform.fill(-1);
  std::size_t i = 0;
  for (std::size_t block_idx = 0; block_idx < kNumBlocks; ++block_idx) {
    const char32_t first = static_cast<char32_t>(block_idx * 256);
    while (i < intervals.size() && intervals[i].end <= first) ++i;
    const bool whole = first > 0 && intervals[i].end >= first + 256;
    if (whole && uniform[intervals[i].byte] >= 0) {
      block_of_[block_idx] = static_cast<std::uint16_t>(uniform[intervals[i].byte]);
      continue;
    }
    Block block;
    std::size_t j = i;
    for (char32_t offset = 0; offset < 256; ++offset) {
      const char32_t c = first + offset;
      while (intervals[j].end <= c) ++j;
      block[offset] = c < 0x80 ? static_cast<std::uint8_t>(c) : intervals[j].byte;
    }
    block_of_[block_idx] = static_cast<std::uint16_t>(blocks_.size());
    if (whole) uniform[intervals[i].byte] = static_cast<int>(blocks_.size());
    blocks_.push_back(block);
  }
}

std::string ByteAlphabet::class_of_set(std::size_t set_idx) const {
  const std::array<bool, 256>& members = members_[set_idx];
  std::string items;
  for (int c = 0; c < 256; ++c) {
    if (!members[static_cast<std::size_t>(c)]) continue;
    const int first = c;
    while (c + 1 < 256 && members[static_cast<std::size_t>(c + 1)]) ++c;
    items += fmt::format("\\x{:02x}", first);
    if (c > first) items += fmt::format("-\\x{:02x}", c);
  }
  return items.empty() ? "(?!)" : "[" + items + "]";
}

std::string ByteAlphabet::translate(std::string_view text) const {
  std::string out(text.size(), '\0');
  std::size_t size = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    const auto lead = static_cast<unsigned char>(text[pos]);
    if (lead < 0x80) {
      out[size++] = static_cast<char>(lead);
      ++pos;
    } else {
      out[size++] = static_cast<char>(byte_of(decode_valid_utf8(text.data() + pos)));
      pos += static_cast<std::size_t>(utf8_length(lead));
    }
  }
  out.resize(size);
  return out;
}

}  // namespace dunlin
