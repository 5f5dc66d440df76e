// Python's ==, hash() and ordering.
#pragma once

#include <compare>
#include <cstddef>
#include <string_view>

#include "text/jinja/value.h"

namespace dunlin::jinja {

// Follows nested lists and dicts at most Limits::value_depth deep; faults (kLimit) beyond.
bool equal(Budget& budget, const Value& a, const Value& b);

// Equal values have equal hashes. Faults on lists, dicts and other values without one.
std::size_t hash_of(const Value& value);
std::size_t hash_of_text(std::string_view text);

// How a stands to b; faults, naming `op`, where Python knows no order. Unordered where a float is
// NaN.
std::partial_ordering order(Budget& budget, const Value& a, const Value& b, std::string_view op);

// Python's name of the value's type, as its error messages use it.
std::string_view type_name(const Value& value);

}  // namespace dunlin::jinja
