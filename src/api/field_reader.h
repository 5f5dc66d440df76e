// Typed reading of a JSON object's fields. A field that is absent or null leaves the value as it
// is. The first wrong field is remembered, later reads still run, and error() tells at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "api/api_error.h"

namespace dunlin {

class FieldReader {
 public:
  // `object` must outlive the reader and be a JSON object. `where` is put in front of field names
  // ("messages[2].").
  explicit FieldReader(const nlohmann::ordered_json& object, std::string where = {});

  void read(const char* name, bool& out);
  void read(const char* name, std::string& out);
  void read(const char* name, float& out);  // finite
  void read(const char* name, int& out, std::int64_t min, std::int64_t max);
  void read(const char* name, std::uint64_t& out);  // any 64-bit integer

  // The field, or nullptr where it is absent or null.
  const nlohmann::ordered_json* find(const char* name) const;

  void fail(std::string_view name, std::string problem, std::string code = {});
  void adopt(const ApiError& error);  // of a reader of an inner object
  const std::optional<ApiError>& error() const { return error_; }

 private:
  const nlohmann::ordered_json& object_;
  std::string where_;
  std::optional<ApiError> error_;
};

// "a string", "an array", ...: what a JSON value is, for messages.
std::string_view json_kind(const nlohmann::ordered_json& value);
// An integer, also where it is written as 5.0; nullopt for anything else or beyond 64 bits.
std::optional<std::int64_t> as_integer(const nlohmann::ordered_json& value);

}  // namespace dunlin
