// Finds stop strings in text that arrives in pieces, wherever the pieces are cut, and holds back
// what may still become one. Knuth, Morris, Pratt, "Fast pattern matching in strings", 1977: one
// state for each stop string, so the cost is linear in the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/types.h"

namespace dunlin {

class StopMatcher {
 public:
  explicit StopMatcher(StopSpec spec);

  // Text that is certain after `piece`, up to the first stop string that is complete; of those that
  // end at the same byte the longest counts. With `armed` false a stop string that ends in this
  // piece is passed over (min_tokens). After a match nothing more may be pushed.
  std::string push(std::string_view piece, bool armed);
  // What was held back, where the text ends without a stop string.
  std::string finish();

  // The stop string that was met.
  const std::optional<std::string>& matched() const { return matched_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<int> fallback;  // [size]: longest proper border of text[0..i]
    int state = 0;              // bytes of text that the input's end matches
  };

  StopSpec spec_;
  std::vector<Pattern> patterns_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace dunlin
