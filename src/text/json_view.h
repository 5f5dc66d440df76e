// A place in a JSON file that comes from outside, with its path for error messages. Every getter
// checks presence and type; a Status reads "PATH.KEY: what is wrong".
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/quote.h"
#include "dunlin/status.h"

namespace dunlin::hf {

class JsonView {
 public:
  // `value` must outlive the view.
  JsonView(const nlohmann::json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  tl::unexpected<Status> error(std::string_view what) const {
    return invalid(fmt::format("{}: {}", path_, what));
  }

  bool has(std::string_view key) const { return find(key) != nullptr; }  // and is not null
  Result<JsonView> object(std::string_view key) const;
  Result<std::vector<JsonView>> array(std::string_view key) const;
  Result<std::string> string(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string_view otherwise) const;
  Result<bool> boolean_or(std::string_view key, bool otherwise) const;
  Result<int> integer(std::string_view key, int min, int max) const;
  Result<int> integer_or(std::string_view key, int otherwise, int min, int max) const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  JsonView child(std::string_view key, const nlohmann::json& value) const {
    return JsonView(value, fmt::format("{}.{}", path_, key));
  }
  Result<JsonView> required(std::string_view key) const;

  const nlohmann::json* value_;
  std::string path_;
};

// The row of `table` (rows have a `name`) that `key` of `view` names; kInvalidArgument with all
// names where there is none.
template <typename Row>
Result<const Row*> find_named(const JsonView& view, std::string_view key,
                              std::span<const Row> table) {
  DUNLIN_ASSIGN(name, view.string(key));
  std::vector<std::string_view> names;
  for (const Row& row : table) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  return invalid(fmt::format("{}.{}: {} is not supported; supported are {}", view.path(), key,
                             quote_for_message(name, 64), fmt::join(names, ", ")));
}

}  // namespace dunlin::hf
