#include "formats/hf_config.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/mapped_file.h"

namespace dunlin {

using nlohmann::json;

struct HfConfig::Shared {
  std::string path;
  json root;
  std::optional<Status> error;
};

HfConfig::HfConfig(std::shared_ptr<Shared> shared, const json* object, std::string prefix)
    : shared_(std::move(shared)), object_(object), prefix_(std::move(prefix)) {}

Result<HfConfig> HfConfig::read(const std::string& folder, std::string_view name) {
  const std::string path = folder + "/" + std::string(name);
  DUNLIN_ASSIGN(file, MappedFile::open(path));
  return parse(file.text(), path);
}

Result<HfConfig> HfConfig::parse(std::string_view text, std::string path) {
  auto root = parse_json(text);
  if (!root) return tl::unexpected(root.error().with_prefix(path));
  if (!root->is_object()) return invalid(path + ": is not a JSON object");
  auto shared = std::make_shared<Shared>(Shared{std::move(path), std::move(*root), std::nullopt});
  const json* object = &shared->root;
  return HfConfig(std::move(shared), object, "");
}

const std::string& HfConfig::path() const { return shared_->path; }

const json* HfConfig::find(std::string_view key) const {
  if (object_ == nullptr) return nullptr;
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

bool HfConfig::has(std::string_view key) const { return find(key) != nullptr; }

bool HfConfig::is_object(std::string_view key) const {
  const json* value = find(key);
  return value != nullptr && value->is_object();
}

bool HfConfig::is_array(std::string_view key) const {
  const json* value = find(key);
  return value != nullptr && value->is_array();
}

void HfConfig::refuse(StatusCode code, std::string message) const {
  if (!shared_->error) shared_->error = Status(code, path() + ": " + std::move(message));
}

Outcome HfConfig::outcome() const {
  if (shared_->error) return tl::unexpected<Status>(*shared_->error);
  return {};
}

void HfConfig::refuse_type(std::string_view key, std::string_view wanted) const {
  refuse(StatusCode::kInvalidArgument, fmt::format("{}{} is not {}", prefix_, key, wanted));
}

void HfConfig::refuse_missing(std::string_view key) const {
  refuse(StatusCode::kInvalidArgument, fmt::format("{}{} is missing", prefix_, key));
}

std::int64_t HfConfig::integer(std::string_view key, std::optional<std::int64_t> if_missing) const {
  const json* value = find(key);
  if (value == nullptr) {
    if (!if_missing) refuse_missing(key);
    return if_missing.value_or(1);
  }
  if (value->is_number_integer() &&
      !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX)) {
    return value->get<std::int64_t>();
  }
  // Some files write 4096.0.
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (number == std::floor(number) && std::fabs(number) < 1e15)
      return static_cast<std::int64_t>(number);
  }
  refuse_type(key, "an integer");
  return 1;
}

double HfConfig::number(std::string_view key, std::optional<double> if_missing) const {
  const json* value = find(key);
  if (value == nullptr) {
    if (!if_missing) refuse_missing(key);
    return if_missing.value_or(1.0);
  }
  if (value->is_number()) return value->get<double>();
  refuse_type(key, "a number");
  return 1.0;
}

bool HfConfig::flag(std::string_view key, std::optional<bool> if_missing) const {
  const json* value = find(key);
  if (value == nullptr) {
    if (!if_missing) refuse_missing(key);
    return if_missing.value_or(false);
  }
  if (value->is_boolean()) return value->get<bool>();
  refuse_type(key, "true or false");
  return false;
}

std::string HfConfig::word(std::string_view key, std::optional<std::string_view> if_missing) const {
  const json* value = find(key);
  if (value == nullptr) {
    if (!if_missing) refuse_missing(key);
    return std::string(if_missing.value_or(""));
  }
  if (value->is_string()) return value->get<std::string>();
  refuse_type(key, "a string");
  return "";
}

template <typename T, typename Read>
std::vector<T> HfConfig::array(std::string_view key, std::string_view wanted, Read read) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  std::vector<T> values;
  if (value->is_array()) {
    for (const json& item : *value) {
      const std::optional<T> element = read(item);
      if (!element) break;
      values.push_back(*element);
    }
    if (values.size() == value->size()) return values;
  }
  refuse_type(key, wanted);
  return {};
}

std::vector<std::int64_t> HfConfig::integers(std::string_view key) const {
  return array<std::int64_t>(
      key, "an array of integers", [](const json& item) -> std::optional<std::int64_t> {
        if (item.is_boolean()) return item.get<bool>() ? 1 : 0;
        if (!item.is_number_integer()) return std::nullopt;
        if (item.is_number_unsigned() && item.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
        return item.get<std::int64_t>();
      });
}

std::vector<double> HfConfig::numbers(std::string_view key) const {
  return array<double>(key, "an array of numbers", [](const json& item) -> std::optional<double> {
    if (!item.is_number()) return std::nullopt;
    return item.get<double>();
  });
}

std::vector<std::string> HfConfig::words(std::string_view key) const {
  return array<std::string>(key, "an array of strings",
                            [](const json& item) -> std::optional<std::string> {
                              if (!item.is_string()) return std::nullopt;
                              return item.get<std::string>();
                            });
}

HfConfig HfConfig::object(std::string_view key) const {
  const json* value = find(key);
  const std::string prefix = prefix_ + std::string(key) + ".";
  if (value != nullptr && !value->is_object()) {
    refuse_type(key, "an object");
    value = nullptr;
  }
  return HfConfig(shared_, value, prefix);
}

}  // namespace dunlin
