#include "text/jinja/from_json.h"

#include <nlohmann/json.hpp>

#include "text/jinja/nesting.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

Value text_of(Runtime& runtime, const std::string& text, bool is_input) {
  if (text.size() > runtime.budget().limits().string_bytes) {
    limit_fault("a text of the request is longer than the template's budget");
  }
  if (!valid_utf8(text)) fault("a text of the request is not valid UTF-8");
  return Value::string(make_str(runtime.budget(), text, is_input));
}

}  // namespace

Value from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool is_input) {
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::null: return Value::none();
    case Type::boolean: return Value::boolean(json.get<bool>());
    case Type::number_integer: return Value::integer(json.get<std::int64_t>());
    case Type::number_unsigned: return Value::integer(json.get<std::uint64_t>());
    case Type::number_float: return Value::real(json.get<double>());
    case Type::string: return text_of(runtime, json.get_ref<const std::string&>(), is_input);
    case Type::array: {
      const Nesting nesting(runtime.budget());
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(runtime, item, is_input));
      return runtime.list(std::move(items));
    }
    case Type::object: {
      const Nesting nesting(runtime.budget());
      auto dict = runtime.dict();
      for (const auto& [key, value] : json.items()) {
        dict->set(text_of(runtime, key, is_input), from_json(runtime, value, is_input));
      }
      return Value::object(dict);
    }
    default: fault("binary values can't be given to a template");
  }
}

}  // namespace dunlin::jinja
