// The tests behind `is`.
#include <unordered_map>

#include "text/jinja/arithmetic.h"
#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"

namespace dunlin::jinja {
namespace {

// value % divisor == rest
Value leaves(Runtime& runtime, const Value& value, const Value& divisor, Int rest) {
  const Value mod = arithmetic(runtime, Arithmetic::kMod, value, divisor);
  return Value::boolean(equal(runtime.budget(), mod, Value::integer(rest)));
}

Value odd(Runtime& runtime, Args& args) {
  return leaves(runtime, args.pos[0], Value::integer(2), 1);
}
Value even(Runtime& runtime, Args& args) {
  return leaves(runtime, args.pos[0], Value::integer(2), 0);
}
Value divisible_by(Runtime& runtime, Args& args) {
  return leaves(runtime, args.pos[0], args.pos[1], 0);
}

template <bool (*predicate)(const Value&)>
Value holds(Runtime&, Args& args) {
  return Value::boolean(predicate(args.pos[0]));
}
bool defined(const Value& v) { return !v.is_undefined(); }
bool undefined(const Value& v) { return v.is_undefined(); }
bool none(const Value& v) { return v.is_none(); }
bool boolean(const Value& v) { return v.is_bool(); }
bool is_false(const Value& v) { return v.is_bool() && !v.as_bool(); }
bool is_true(const Value& v) { return v.is_bool() && v.as_bool(); }
bool integer(const Value& v) { return v.is_int(); }
bool real(const Value& v) { return v.is_float(); }
bool string(const Value& v) { return v.is_string(); }
bool mapping(const Value& v) { return v.as<Dict>() != nullptr; }
bool number(const Value& v) { return v.is_number(); }
bool sequence(const Value& v) {
  return v.is_undefined() || v.is_string() || v.as<List>() != nullptr || v.as<Tuple>() != nullptr ||
         v.as<Dict>() != nullptr || v.as<Range>() != nullptr;
}
bool callable(const Value& v) {
  return v.is_undefined() || (v.is_object() && v.object().callable());
}
bool escaped(const Value& v) { return v.is_string() && v.str().markup(); }
bool filter(const Value& v) {
  hash_of(v);  // faults on what can be no name
  return v.is_string() && find_filter(v.text()) != nullptr;
}
bool test(const Value& v) {
  hash_of(v);
  return v.is_string() && find_test(v.text()) != nullptr;
}

Value iterable(Runtime& runtime, Args& args) {
  return Value::boolean(runtime.iterable(args.pos[0]));
}

template <bool upper>
Value one_case(Runtime& runtime, Args& args) {
  const Value text = Value::string(runtime.to_str(args.pos[0]));
  Args self{{text}, {}};
  return invoke(runtime, *find_method(text, upper ? "isupper" : "islower"), self);
}

Value same_as(Runtime& runtime, Args& args) {
  const Value& a = args.pos[0];
  const Value& b = args.pos[1];
  if (a.kind() != b.kind()) return Value::boolean(false);
  if (a.is_object()) return Value::boolean(a.object_ptr() == b.object_ptr());
  return Value::boolean(equal(runtime.budget(), a, b));
}

Value in(Runtime& runtime, Args& args) {
  return Value::boolean(runtime.contains(args.pos[1], args.pos[0]));
}

Value eq(Runtime& runtime, Args& args) {
  return Value::boolean(equal(runtime.budget(), args.pos[0], args.pos[1]));
}
Value ne(Runtime& runtime, Args& args) {
  return Value::boolean(!equal(runtime.budget(), args.pos[0], args.pos[1]));
}
std::partial_ordering compared(Runtime& runtime, const Args& args, std::string_view op) {
  return order(runtime.budget(), args.pos[0], args.pos[1], op);
}
Value gt(Runtime& runtime, Args& args) { return Value::boolean(compared(runtime, args, ">") > 0); }
Value ge(Runtime& runtime, Args& args) {
  return Value::boolean(compared(runtime, args, ">=") >= 0);
}
Value lt(Runtime& runtime, Args& args) { return Value::boolean(compared(runtime, args, "<") < 0); }
Value le(Runtime& runtime, Args& args) {
  return Value::boolean(compared(runtime, args, "<=") <= 0);
}

constexpr Builtin kTests[] = {
    {"odd", "value", 1, odd},
    {"even", "value", 1, even},
    {"divisibleby", "value num", 2, divisible_by},
    {"defined", "value", 1, holds<defined>},
    {"undefined", "value", 1, holds<undefined>},
    {"filter", "value", 1, holds<filter>},
    {"test", "value", 1, holds<test>},
    {"none", "value", 1, holds<none>},
    {"boolean", "value", 1, holds<boolean>},
    {"false", "value", 1, holds<is_false>},
    {"true", "value", 1, holds<is_true>},
    {"integer", "value", 1, holds<integer>},
    {"float", "value", 1, holds<real>},
    {"lower", "value", 1, one_case<false>},
    {"upper", "value", 1, one_case<true>},
    {"string", "value", 1, holds<string>},
    {"mapping", "value", 1, holds<mapping>},
    {"number", "value", 1, holds<number>},
    {"sequence", "value", 1, holds<sequence>},
    {"iterable", "value", 1, iterable},
    {"callable", "value", 1, holds<callable>},
    {"sameas", "value other", 2, same_as},
    {"escaped", "value", 1, holds<escaped>},
    {"in", "value seq", 2, in},
    {"==", "a b", 2, eq},
    {"eq", "a b", 2, eq},
    {"equalto", "a b", 2, eq},
    {"!=", "a b", 2, ne},
    {"ne", "a b", 2, ne},
    {">", "a b", 2, gt},
    {"gt", "a b", 2, gt},
    {"greaterthan", "a b", 2, gt},
    {">=", "a b", 2, ge},
    {"ge", "a b", 2, ge},
    {"<", "a b", 2, lt},
    {"lt", "a b", 2, lt},
    {"lessthan", "a b", 2, lt},
    {"<=", "a b", 2, le},
    {"le", "a b", 2, le},
};

}  // namespace

const Builtin* find_test(std::string_view name) {
  static const auto kTable = [] {
    std::unordered_map<std::string_view, const Builtin*> table;
    for (const Builtin& builtin : kTests) table.emplace(builtin.name, &builtin);
    return table;
  }();
  const auto it = kTable.find(name);
  return it != kTable.end() ? it->second : nullptr;
}

}  // namespace dunlin::jinja
