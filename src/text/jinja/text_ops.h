// The work behind str's methods and the text filters: Python's results, provenance kept.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"

namespace dunlin::jinja {

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

// First byte offset of `needle` in hay[from, ...), or kNowhere. Linear time.
std::size_t find_text(Budget& budget, std::string_view hay, std::string_view needle,
                      std::size_t from);
// Start of the last occurrence that ends at or before `end`. Linear time.
std::size_t find_last_text(Budget& budget, std::string_view hay, std::string_view needle,
                           std::size_t end);

enum class Case { kUpper, kLower, kTitle, kCapital, kSwap, kFold };
StrPtr change_case(Budget& budget, const StrPtr& s, Case how);

enum Side : unsigned { kLeft = 1, kRight = 2, kBoth = 3 };
// Without `chars` (null): whitespace.
StrPtr strip(Budget& budget, const StrPtr& s, const Str* chars, Side side);

// Without `separator` (null): runs of whitespace. At most `limit` cuts.
std::vector<Value> split(Runtime& runtime, const StrPtr& s, const Str* separator,
                         std::size_t limit);
std::vector<Value> split_from_right(Runtime& runtime, const StrPtr& s, const Str* separator,
                                    std::size_t limit);
std::vector<StrPtr> split_lines(Budget& budget, const StrPtr& s, bool keep_ends);

StrPtr replace(Budget& budget, const StrPtr& s, const Str& old_text, const Str& new_text,
               std::size_t limit);

// `separator`.join(parts); each part must be a string.
StrPtr join(Runtime& runtime, const StrPtr& separator, const Value& parts);

}  // namespace dunlin::jinja
