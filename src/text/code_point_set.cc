#include "text/code_point_set.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace dunlin {
namespace {

// Names in the order in which unicode_categories.inc numbers them.
constexpr std::array<std::string_view, 30> kCategoryNames = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};

constexpr std::uint32_t kCategoryRuns[] = {
#include "text/unicode_categories.inc"
};

bool is_in_group(std::string_view category, std::string_view name) {
  if (name == "Any") return true;
  if (name == "LC" || name == "L&") return category == "Lu" || category == "Ll" || category == "Lt";
  return category.substr(0, name.size()) == name;
}

}  // namespace

CodePointSet::CodePointSet(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  for (const Range& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

bool CodePointSet::contains(char32_t code_point) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), code_point,
                       [](char32_t value, const Range& range) { return value < range.first; });
  return after != ranges_.begin() && code_point <= std::prev(after)->last;
}

CodePointSet CodePointSet::complement() const {
  CodePointSet out;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMaxCodePoint) out.ranges_.push_back({next, kMaxCodePoint});
  return out;
}

CodePointSet CodePointSet::united(const CodePointSet& other) const {
  std::vector<Range> ranges = ranges_;
  ranges.insert(ranges.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePointSet(std::move(ranges));
}

std::optional<CodePointSet> code_points_of_category(std::string_view name) {
  if (name.empty()) return std::nullopt;
  std::array<bool, kCategoryNames.size()> wanted{};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] = is_in_group(kCategoryNames[i], name);
  }
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return std::nullopt;

  std::vector<CodePointSet::Range> ranges;
  const std::size_t num_runs = std::size(kCategoryRuns);
  for (std::size_t i = 0; i < num_runs; ++i) {
    if (!wanted[kCategoryRuns[i] & 31]) continue;
    const char32_t end = i + 1 < num_runs ? kCategoryRuns[i + 1] >> 5 : kMaxCodePoint + 1;
    ranges.push_back({kCategoryRuns[i] >> 5, end - 1});
  }
  return CodePointSet(std::move(ranges));
}

CodePointSet white_space() {
  return CodePointSet({{0x09, 0x0D},
                       {0x20, 0x20},
                       {0x85, 0x85},
                       {0xA0, 0xA0},
                       {0x1680, 0x1680},
                       {0x2000, 0x200A},
                       {0x2028, 0x2029},
                       {0x202F, 0x202F},
                       {0x205F, 0x205F},
                       {0x3000, 0x3000}});
}

CodePointSet circled_letters() {
  return CodePointSet(
      {{0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}});
}

CodePointSet word_characters() {
  // Oniguruma counts the fractions and superscripts of Latin-1 as word characters, too, but no
  // others.
  CodePointSet out({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}});
  for (std::string_view name : {"L", "M", "Nd", "Nl", "Pc"}) {
    out = out.united(*code_points_of_category(name));
  }
  return out.united(circled_letters());
}

}  // namespace dunlin
