// Sets of Unicode code points, and what the names in regular expressions stand for.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dunlin {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;

// Sorted, disjoint, non-adjacent ranges.
class CodePointSet {
 public:
  struct Range {
    char32_t first;
    char32_t last;  // inclusive
    bool operator==(const Range&) const = default;
  };

  CodePointSet() = default;
  explicit CodePointSet(std::vector<Range> ranges);  // any order, may overlap

  std::span<const Range> ranges() const { return ranges_; }
  bool contains(char32_t code_point) const;
  CodePointSet complement() const;
  CodePointSet united(const CodePointSet& other) const;
  bool operator==(const CodePointSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

// Code points of a general category ("Lu"), a group of them ("L", "P", "LC") or "Any", in the
// Unicode version of unicode_categories.inc. nullopt: no such name, or a script or another kind of
// property, which the table doesn't have.
std::optional<CodePointSet> code_points_of_category(std::string_view name);

// The property White_Space: \s of Hugging Face's expressions.
CodePointSet white_space();
// Circled and squared letters: alphabetic, though symbols by category.
CodePointSet circled_letters();
// \w of Hugging Face's expressions: alphabetic characters, marks, decimal digits, connector
// punctuation, and what Oniguruma adds.
CodePointSet word_characters();

}  // namespace dunlin
