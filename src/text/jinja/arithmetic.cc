#include "text/jinja/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"

namespace dunlin::jinja {
namespace {

std::string_view symbol(Arithmetic op) {
  constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return kSymbols[static_cast<std::size_t>(op)];
}

[[noreturn]] void unsupported(Arithmetic op, const Value& a, const Value& b) {
  fault("unsupported operand type(s) for " + std::string(symbol(op)) + ": '" +
        std::string(type_name(a)) + "' and '" + std::string(type_name(b)) + "'");
}

[[noreturn]] void too_large() { fault("the result is an integer too large for this engine"); }

double python_mod(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod == 0) return std::copysign(0.0, b);
  if ((b < 0) != (mod < 0)) mod += b;
  return mod;
}

double python_floor_div(double a, double b) {
  const double mod = std::fmod(a, b);
  double quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value int_power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) fault("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      too_large();
    }
    if (base == 0 || base == 1) return Value::integer(base == 0 && exponent > 0 ? 0 : result);
  }
  return Value::integer(result);
}

Value int_arithmetic(Arithmetic op, Int a, Int b) {
  Int result = 0;
  switch (op) {
    case Arithmetic::kAdd:
      if (__builtin_add_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Arithmetic::kSub:
      if (__builtin_sub_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Arithmetic::kMul:
      if (__builtin_mul_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Arithmetic::kDiv:
      if (b == 0) fault("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Arithmetic::kFloorDiv:
    case Arithmetic::kMod: {
      if (b == 0) fault("integer division or modulo by zero");
      if (b == -1)
        return op == Arithmetic::kMod ? Value::integer(0) : int_arithmetic(Arithmetic::kSub, 0, a);
      Int quotient = a / b;
      Int rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        --quotient;
      }
      return Value::integer(op == Arithmetic::kMod ? rest : quotient);
    }
    default: return int_power(a, b);
  }
}

Value float_power(double a, double b) {
  if (a == 0 && b < 0) fault("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    fault("the result is a complex number");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    fault("(34, 'Numerical result out of range')");
  }
  return Value::real(result);
}

Value float_arithmetic(Arithmetic op, double a, double b) {
  switch (op) {
    case Arithmetic::kAdd: return Value::real(a + b);
    case Arithmetic::kSub: return Value::real(a - b);
    case Arithmetic::kMul: return Value::real(a * b);
    case Arithmetic::kDiv:
      if (b == 0) fault("float division by zero");
      return Value::real(a / b);
    case Arithmetic::kFloorDiv:
      if (b == 0) fault("float floor division by zero");
      return Value::real(python_floor_div(a, b));
    case Arithmetic::kMod:
      if (b == 0) fault("float modulo");
      return Value::real(python_mod(a, b));
    default: return float_power(a, b);
  }
}

const std::vector<Value>* sequence(const Value& value) {
  if (const auto* list = value.as<List>()) return &list->items();
  if (const auto* tuple = value.as<Tuple>()) return &tuple->items();
  return nullptr;
}

Value concatenate(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    const bool markup = a.str().markup() || b.str().markup();
    StrBuilder out(runtime.budget());
    out.append(markup ? *escape_html(runtime, a) : a.str());
    out.append(markup ? *escape_html(runtime, b) : b.str());
    return Value::string(out.finish(markup));
  }
  const auto* x = sequence(a);
  const auto* y = sequence(b);
  if (x != nullptr && y != nullptr && type_name(a) == type_name(b)) {
    runtime.budget().step(x->size() + y->size());
    std::vector<Value> items = *x;
    items.insert(items.end(), y->begin(), y->end());
    return a.as<List>() != nullptr ? runtime.list(std::move(items))
                                   : runtime.tuple(std::move(items));
  }
  if (a.is_string() || x != nullptr) {
    const std::string name(a.is_string() ? "str" : type_name(a));
    fault("can only concatenate " + name + " (not \"" + std::string(type_name(b)) + "\") to " +
          name);
  }
  unsupported(Arithmetic::kAdd, a, b);
}

Value repeat(Runtime& runtime, const Value& what, const Value& times) {
  const std::size_t count = to_size(times);
  if (what.is_string()) {
    StrBuilder out(runtime.budget());
    const std::size_t size = what.text().size();
    if (size > 0 && count > runtime.budget().limits().string_bytes / size) {
      limit_fault("the template makes a text longer than its budget");
    }
    for (std::size_t i = 0; size > 0 && i < count; ++i) out.append(what.str());
    return Value::string(out.finish(what.str().markup()));
  }
  const auto& items = *sequence(what);
  if (!items.empty() &&
      count > runtime.budget().limits().memory_bytes / sizeof(Value) / items.size()) {
    limit_fault("the template makes a list longer than its budget");
  }
  runtime.budget().step(items.size() * count);
  std::vector<Value> out;
  out.reserve(items.size() * count);
  for (std::size_t i = 0; !items.empty() && i < count; ++i) {
    out.insert(out.end(), items.begin(), items.end());
  }
  return what.as<List>() != nullptr ? runtime.list(std::move(out)) : runtime.tuple(std::move(out));
}

Value round_int(Int value, Int digits) {
  if (digits >= 0) return Value::integer(value);
  Int unit = 1;
  for (Int i = 0; i < -digits; ++i) {
    if (__builtin_mul_overflow(unit, Int{10}, &unit)) return Value::integer(0);
  }
  Int rest = value % unit;
  if (rest < 0) rest += unit;
  const Int down = value - rest;
  const bool up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
  return Value::integer(up ? down + unit : down);
}

}  // namespace

Value arithmetic(Runtime& runtime, Arithmetic op, const Value& a, const Value& b) {
  runtime.budget().step();
  if (a.is_string() && op == Arithmetic::kMod) return format_printf(runtime, a, b);
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) fault(side->as_undefined().message);
  }
  if (a.is_integral() && b.is_integral()) return int_arithmetic(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return float_arithmetic(op, a.as_float(), b.as_float());
  if (op == Arithmetic::kAdd) return concatenate(runtime, a, b);
  if (op == Arithmetic::kMul) {
    if ((a.is_string() || sequence(a) != nullptr) && b.is_integral()) return repeat(runtime, a, b);
    if ((b.is_string() || sequence(b) != nullptr) && a.is_integral()) return repeat(runtime, b, a);
    if (a.is_string() || sequence(a) != nullptr) {
      fault("can't multiply sequence by non-int of type '" + std::string(type_name(b)) + "'");
    }
  }
  unsupported(op, a, b);
}

Value negate(const Value& value) {
  if (value.is_undefined()) fault(value.as_undefined().message);
  if (value.is_integral()) return int_arithmetic(Arithmetic::kSub, 0, value.as_int());
  if (value.is_float()) return Value::real(-value.as_float());
  fault("bad operand type for unary -: '" + std::string(type_name(value)) + "'");
}

Value plus(const Value& value) {
  if (value.is_undefined()) fault(value.as_undefined().message);
  if (value.is_integral()) return Value::integer(value.as_int());
  if (value.is_float()) return value;
  fault("bad operand type for unary +: '" + std::string(type_name(value)) + "'");
}

Value round_number(const Value& value, Int digits) {
  if (value.is_integral()) return round_int(value.as_int(), digits);
  const double x = value.as_float();
  constexpr Int kAllDigits = 330;  // past the last digit of any double
  if (!std::isfinite(x) || digits > kAllDigits) return value;
  if (digits < -kAllDigits) return Value::real(std::copysign(0.0, x));
  if (digits >= 0) {
    char buffer[800];  // 309 whole digits, 330 after the point
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), x);
    return Value::real(std::strtod(buffer, nullptr));
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return Value::real(std::nearbyint(x / unit) * unit);
}

Int truncate_float(double value) {
  if (std::isnan(value)) fault("cannot convert float NaN to integer");
  if (std::isinf(value)) fault("cannot convert float infinity to integer");
  if (std::fabs(value) >= 0x1p126) too_large();
  return static_cast<Int>(value);
}

}  // namespace dunlin::jinja
