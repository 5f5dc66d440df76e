#include "text/jinja/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>

#include "text/jinja/nesting.h"

namespace dunlin::jinja {
namespace {

std::partial_ordering order_int_float(Int a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  constexpr double kBeyondInt = 0x1p126;
  if (b >= kBeyondInt) return std::partial_ordering::less;
  if (b <= -kBeyondInt) return std::partial_ordering::greater;
  const Int whole = static_cast<Int>(b);
  if (a != whole) return a < whole ? std::partial_ordering::less : std::partial_ordering::greater;
  return 0.0 <=> b - static_cast<double>(whole);
}

std::partial_ordering order_numbers(const Value& a, const Value& b) {
  if (a.is_float() && b.is_float()) return a.as_float() <=> b.as_float();
  if (a.is_float()) return 0 <=> order_int_float(b.as_int(), a.as_float());
  if (b.is_float()) return order_int_float(a.as_int(), b.as_float());
  const Int x = a.as_int();
  const Int y = b.as_int();
  return x < y   ? std::partial_ordering::less
         : x > y ? std::partial_ordering::greater
                 : std::partial_ordering::equivalent;
}

bool equal_items(Budget& budget, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(budget, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal(budget, value, *other)) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  if (a.length() != b.length()) return false;
  if (a.length() == 0) return true;
  return a.start() == b.start() && (a.length() == 1 || a.step() == b.step());
}

bool equal_objects(Budget& budget, const Value& a, const Value& b) {
  if (a.object_ptr() == b.object_ptr()) return true;
  const Nesting nesting(budget);
  if (auto *x = a.as<List>(), *y = b.as<List>(); x != nullptr && y != nullptr) {
    return equal_items(budget, x->items(), y->items());
  }
  if (auto *x = a.as<Tuple>(), *y = b.as<Tuple>(); x != nullptr && y != nullptr) {
    return equal_items(budget, x->items(), y->items());
  }
  if (auto *x = a.as<Dict>(), *y = b.as<Dict>(); x != nullptr && y != nullptr) {
    return equal_dicts(budget, *x, *y);
  }
  if (auto *x = a.as<Range>(), *y = b.as<Range>(); x != nullptr && y != nullptr) {
    return equal_ranges(*x, *y);
  }
  return false;
}

const std::vector<Value>* items_of(const Value& value) {
  if (auto* list = value.as<List>()) return &list->items();
  if (auto* tuple = value.as<Tuple>()) return &tuple->items();
  return nullptr;
}

}  // namespace

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kString:
      budget.scan(a.text().size() == b.text().size() ? a.text().size() : 0);
      return a.text() == b.text();
    case Kind::kObject: return equal_objects(budget, a, b);
    default: return true;  // None and None, undefined and undefined
  }
}

std::size_t hash_of_text(std::string_view text) { return std::hash<std::string_view>{}(text); }

std::size_t hash_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kInt: return std::hash<double>{}(static_cast<double>(value.as_int()));
    case Kind::kFloat: return std::hash<double>{}(value.as_float());
    case Kind::kString: return hash_of_text(value.text());
    case Kind::kObject: break;
    default: return static_cast<std::size_t>(value.kind());
  }
  if (const auto* tuple = value.as<Tuple>()) {
    const Nesting nesting(tuple->heap().budget());
    std::size_t hash = tuple->items().size();
    for (const Value& item : tuple->items()) hash = hash * 1'000'003 + hash_of(item);
    return hash;
  }
  if (value.as<List>() != nullptr || value.as<Dict>() != nullptr) {
    fault("unhashable type: '" + std::string(type_name(value)) + "'");
  }
  return std::hash<const Object*>{}(&value.object());
}

std::partial_ordering order(Budget& budget, const Value& a, const Value& b, std::string_view op) {
  budget.step();
  if (a.is_number() && b.is_number()) return order_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    budget.scan(std::min(a.text().size(), b.text().size()));
    const int sign = a.text().compare(b.text());  // UTF-8 sorts as its code points do
    return sign <=> 0;
  }
  if (a.is_undefined()) fault(a.as_undefined().message);
  if (b.is_undefined()) fault(b.as_undefined().message);
  const auto* x = items_of(a);
  const auto* y = items_of(b);
  if (x != nullptr && y != nullptr && type_name(a) == type_name(b)) {
    const Nesting nesting(budget);
    for (std::size_t i = 0; i < x->size() && i < y->size(); ++i) {
      if (!equal(budget, (*x)[i], (*y)[i])) return order(budget, (*x)[i], (*y)[i], op);
    }
    return x->size() <=> y->size();
  }
  fault(fmt::format("'{}' not supported between instances of '{}' and '{}'", op, type_name(a),
                    type_name(b)));
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kString: return value.str().markup() ? "Markup" : "str";
    default: return value.object().type_name();
  }
}

}  // namespace dunlin::jinja
