// config.json and its like of a Hugging Face folder: a JSON object whose members are asked for by
// type.
//
// Errors stick: the first one is kept, later reads give harmless values, and the caller asks for
// outcome() once at the end. null counts as missing, as the files of transformers mean it. One
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "dunlin/status.h"

namespace dunlin {

class HfConfig {
 public:
  // FOLDER/NAME. kNotFound where there is no such file.
  static Result<HfConfig> read(const std::string& folder, std::string_view name);
  // `path` is for messages.
  static Result<HfConfig> parse(std::string_view text, std::string path);

  const std::string& path() const;

  bool has(std::string_view key) const;  // and not null
  // A missing key is an error that names it, unless `if_missing` is given.
  std::int64_t integer(std::string_view key,
                       std::optional<std::int64_t> if_missing = std::nullopt) const;
  double number(std::string_view key, std::optional<double> if_missing = std::nullopt) const;
  bool flag(std::string_view key, std::optional<bool> if_missing = std::nullopt) const;
  std::string word(std::string_view key,
                   std::optional<std::string_view> if_missing = std::nullopt) const;
  // Arrays; empty where missing. integers() takes booleans as 0 and 1.
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> words(std::string_view key) const;
  // A member that is an object; one without members where it is missing. Shares this one's
  // outcome, and its messages name the member.
  HfConfig object(std::string_view key) const;
  bool is_object(std::string_view key) const;
  bool is_array(std::string_view key) const;

  // Records an error of the caller's; the message gets the path in front.
  void refuse(StatusCode code, std::string message) const;
  Outcome outcome() const;

 private:
  struct Shared;
  HfConfig(std::shared_ptr<Shared> shared, const nlohmann::json* object, std::string prefix);
  const nlohmann::json* find(std::string_view key) const;
  void refuse_type(std::string_view key, std::string_view wanted) const;
  void refuse_missing(std::string_view key) const;
  template <typename T, typename Read>
  std::vector<T> array(std::string_view key, std::string_view wanted, Read read) const;

  std::shared_ptr<Shared> shared_;
  const nlohmann::json* object_;  // null: no members
  std::string prefix_;            // "rope_parameters."
};

}  // namespace dunlin
