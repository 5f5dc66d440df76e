// Python's int() and float() on text and other values.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/runtime.h"

namespace dunlin::jinja {

// Nothing where Python raises ValueError or TypeError; faults on an undefined value and on
// integers that are too large.
std::optional<double> to_float(const Value& value);
std::optional<Int> to_int(const Value& value, int base);
std::optional<double> parse_float(std::string_view text);
std::optional<Int> parse_int(std::string_view text, int base);

}  // namespace dunlin::jinja
