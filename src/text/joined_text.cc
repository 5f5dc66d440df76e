#include "text/joined_text.h"

#include "base/utf8.h"

namespace dunlin {

JoinedText join_segments(std::span<const TextSegment> segments, std::string& storage) {
  JoinedText joined;
  const auto add_range = [&](std::size_t end, bool trusted) {
    if (!joined.ranges.empty() && joined.ranges.back().trusted == trusted) {
      joined.ranges.back().end = end;
    } else {
      joined.ranges.push_back({end, trusted});
    }
  };
  if (segments.size() == 1) {
    joined.text = segments[0].text;
    add_range(joined.text.size(), segments[0].trusted);
  } else {
    for (const TextSegment& segment : segments) {
      storage += segment.text;
      add_range(storage.size(), segment.trusted);
    }
    joined.text = storage;
  }
  if (find_broken_utf8(joined.text) == joined.text.size()) return joined;

  // Repaired as a whole, since a character may stand across a border; a border inside a broken
  // part goes behind its U+FFFD.
  std::string repaired;
  std::size_t range_idx = 0;
  const std::string_view broken = joined.text;
  for (std::size_t pos = 0; pos < broken.size();) {
    const std::size_t good_end = pos + find_broken_utf8(broken.substr(pos));
    for (; range_idx < joined.ranges.size() && joined.ranges[range_idx].end <= good_end;
         ++range_idx) {
      joined.ranges[range_idx].end = joined.ranges[range_idx].end - pos + repaired.size();
    }
    repaired.append(broken.substr(pos, good_end - pos));
    pos = good_end;
    if (pos == broken.size()) break;
    pos += static_cast<std::size_t>(decode_utf8(broken, pos).num_bytes);
    append_utf8(repaired, kReplacementCharacter);
    for (; range_idx < joined.ranges.size() && joined.ranges[range_idx].end <= pos; ++range_idx) {
      joined.ranges[range_idx].end = repaired.size();
    }
  }
  storage = std::move(repaired);
  joined.text = storage;
  return joined;
}

}  // namespace dunlin
