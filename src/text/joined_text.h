// Segments as one text that knows which of it is trusted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace dunlin {

struct TrustRange {
  std::size_t end;  // bytes; it begins where the one before ends
  bool trusted;
};

struct JoinedText {
  std::string_view text;           // valid UTF-8: U+FFFD for each maximal ill-formed piece
  std::vector<TrustRange> ranges;  // neighbours differ in trust
};

// `storage` holds the text where it is not that of one valid segment.
JoinedText join_segments(std::span<const TextSegment> segments, std::string& storage);

}  // namespace dunlin
