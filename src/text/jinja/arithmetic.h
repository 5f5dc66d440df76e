// Python's operators on numbers, strings, lists and tuples.
#pragma once

#include "text/jinja/runtime.h"

namespace dunlin::jinja {

enum class Arithmetic : std::uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };

Value arithmetic(Runtime& runtime, Arithmetic op, const Value& a, const Value& b);
Value negate(const Value& value);
Value plus(const Value& value);

// Python's round(): halves to even on the exact decimal value of a float.
Value round_number(const Value& value, Int digits);
// int(float): faults on nan, infinities and what does not fit.
Int truncate_float(double value);

}  // namespace dunlin::jinja
