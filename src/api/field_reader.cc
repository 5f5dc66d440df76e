#include "api/field_reader.h"

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dunlin {

using nlohmann::ordered_json;

std::string_view json_kind(const ordered_json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  if (value.is_array()) return "an array";
  return "an object";
}

std::optional<std::int64_t> as_integer(const ordered_json& value) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(kMax)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    // 2^53: up to here every integer is a double of its own.
    if (std::abs(number) <= 9007199254740992.0 && number == std::floor(number))
      return static_cast<std::int64_t>(number);
  }
  return std::nullopt;
}

FieldReader::FieldReader(const ordered_json& object, std::string where)
    : object_(object), where_(std::move(where)) {}

const ordered_json* FieldReader::find(const char* name) const {
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void FieldReader::fail(std::string_view name, std::string problem, std::string code) {
  if (error_) return;
  std::string path = where_ + std::string(name);
  error_ = ApiError{400, fmt::format("{} {}", path, problem), path, std::move(code)};
}

void FieldReader::adopt(const ApiError& error) {
  if (!error_) error_ = error;
}

void FieldReader::read(const char* name, bool& out) {
  const ordered_json* value = find(name);
  if (!value) return;
  if (!value->is_boolean())
    return fail(name, fmt::format("must be true or false, not {}", json_kind(*value)));
  out = value->get<bool>();
}

void FieldReader::read(const char* name, std::string& out) {
  const ordered_json* value = find(name);
  if (!value) return;
  if (!value->is_string())
    return fail(name, fmt::format("must be a string, not {}", json_kind(*value)));
  out = value->get<std::string>();
}

void FieldReader::read(const char* name, float& out) {
  const ordered_json* value = find(name);
  if (!value) return;
  if (!value->is_number())
    return fail(name, fmt::format("must be a number, not {}", json_kind(*value)));
  const float number = static_cast<float>(value->get<double>());
  if (!std::isfinite(number)) return fail(name, "is too large");
  out = number;
}

void FieldReader::read(const char* name, int& out, std::int64_t min, std::int64_t max) {
  const ordered_json* value = find(name);
  if (!value) return;
  if (!value->is_number())
    return fail(name, fmt::format("must be an integer, not {}", json_kind(*value)));
  const auto number = as_integer(*value);
  if (!number || *number < min || *number > max)
    return fail(name,
                fmt::format("must be an integer from {} to {}, got {}", min, max, value->dump()));
  out = static_cast<int>(*number);
}

void FieldReader::read(const char* name, std::uint64_t& out) {
  const ordered_json* value = find(name);
  if (!value) return;
  if (value->is_number_unsigned()) {
    out = value->get<std::uint64_t>();
  } else if (const auto number = as_integer(*value)) {
    out = static_cast<std::uint64_t>(*number);
  } else {
    fail(name, value->is_number() ? "must be an integer of 64 bits"
                                  : fmt::format("must be an integer, not {}", json_kind(*value)));
  }
}

}  // namespace dunlin
