#include "text/special_matcher.h"

#include <algorithm>

namespace dunlin {

SpecialMatcher::SpecialMatcher(std::vector<Special> specials) : specials_(std::move(specials)) {
  std::sort(specials_.begin(), specials_.end(), [](const Special& a, const Special& b) {
    return a.text != b.text ? a.text < b.text : a.id < b.id;
  });
  for (const Special& special : specials_) {
    const auto byte = static_cast<unsigned char>(special.text[0]);
    ++first_byte_[byte + 1u];
    if (special.is_control) continue;
    starts_user_defined_[byte] = true;
    has_user_defined_ = true;
  }
  for (std::size_t b = 1; b < first_byte_.size(); ++b) first_byte_[b] += first_byte_[b - 1];
}

std::optional<std::pair<TokenId, TokenId>> SpecialMatcher::find_duplicate() const {
  const auto found =
      std::adjacent_find(specials_.begin(), specials_.end(),
                         [](const Special& a, const Special& b) { return a.text == b.text; });
  if (found == specials_.end()) return std::nullopt;
  return std::pair(found->id, std::next(found)->id);
}

std::optional<SpecialMatcher::Match> SpecialMatcher::find(std::string_view text, std::size_t begin,
                                                          std::size_t end, std::size_t limit,
                                                          bool trusted) const {
  for (std::size_t pos = begin; pos < end; ++pos) {
    const auto byte = static_cast<unsigned char>(text[pos]);
    std::uint32_t low = first_byte_[byte];
    std::uint32_t high = first_byte_[byte + 1u];
    if (low == high || (!trusted && !starts_user_defined_[byte])) continue;

    // [low, high): the specials that start with the `length` bytes at pos. The one that is no
    // longer than that, if there is one, stands first.
    std::optional<Match> longest;
    for (std::size_t length = 1; low < high; ++length) {
      const Special& first = specials_[low];
      if (first.text.size() == length) {
        if (!first.is_control || (trusted && pos + length <= end)) {
          longest = Match{pos, pos + length, first.id};
        }
        ++low;
      }
      if (pos + length >= limit) break;
      const auto next = static_cast<unsigned char>(text[pos + length]);
      const auto byte_at = [&](const Special& special) {
        return static_cast<unsigned char>(special.text[length]);
      };
      const auto from = specials_.begin() + low, to = specials_.begin() + high;
      const auto lower = std::partition_point(
          from, to, [&](const Special& special) { return byte_at(special) < next; });
      const auto upper = std::partition_point(
          lower, to, [&](const Special& special) { return byte_at(special) == next; });
      low = static_cast<std::uint32_t>(lower - specials_.begin());
      high = static_cast<std::uint32_t>(upper - specials_.begin());
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace dunlin
