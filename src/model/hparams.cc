#include "model/hparams.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dunlin {

std::string Hparams::full_key(std::string_view key) const {
  return architecture_ + "." + std::string(key);
}

bool Hparams::has(std::string_view key) const {
  return checkpoint_.metadata(full_key(key)).has_value();
}

void Hparams::refuse(StatusCode code, std::string message) {
  if (!error_) error_ = Status(code, checkpoint_.path() + ": " + std::move(message));
}

void Hparams::refuse_type(const std::string& key, std::string_view wanted) {
  refuse(StatusCode::kInvalidArgument, fmt::format("{} is not {}", key, wanted));
}

Outcome Hparams::outcome() const {
  if (error_) return tl::unexpected<Status>(*error_);
  return {};
}

std::optional<std::int64_t> Hparams::uniform_integer(const std::string& key,
                                                     const MetadataValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  const auto* array = std::get_if<std::vector<std::int64_t>>(&value);
  if (array == nullptr || array->empty()) {
    refuse_type(key, "an integer");
    return std::nullopt;
  }
  if (std::any_of(array->begin(), array->end(), [&](auto i) { return i != array->front(); })) {
    refuse(StatusCode::kUnimplemented, key + " differs between layers, which is not supported yet");
    return std::nullopt;
  }
  return array->front();
}

int Hparams::count(std::string_view key, int min, int max, std::optional<int> if_missing) {
  const std::string name = full_key(key);
  const auto stored = checkpoint_.metadata(name);
  if (!stored) {
    if (!if_missing) {
      refuse(StatusCode::kInvalidArgument, fmt::format("metadata key {} is missing", name));
    }
    return if_missing.value_or(min);
  }
  const std::optional<std::int64_t> value = uniform_integer(name, *stored);
  if (!value) return min;
  if (*value < min || *value > max) {
    refuse(StatusCode::kInvalidArgument,
           fmt::format("{} is {}, but must be from {} to {}", name, *value, min, max));
    return min;
  }
  return static_cast<int>(*value);
}

float Hparams::number(std::string_view key, std::optional<float> if_missing) {
  const std::string name = full_key(key);
  const auto stored = checkpoint_.metadata(name);
  if (!stored) {
    if (!if_missing) {
      refuse(StatusCode::kInvalidArgument, fmt::format("metadata key {} is missing", name));
    }
    return if_missing.value_or(1.0f);
  }
  const auto* value = std::get_if<double>(&*stored);
  if (value == nullptr) {
    refuse_type(name, "a floating-point number");
    return 1.0f;
  }
  if (!std::isfinite(static_cast<float>(*value))) {
    refuse(StatusCode::kInvalidArgument,
           fmt::format("{} is {}, not a finite number", name, *value));
    return 1.0f;
  }
  return static_cast<float>(*value);
}

std::string Hparams::word(std::string_view key, std::string_view if_missing) {
  const std::string name = full_key(key);
  const auto stored = checkpoint_.metadata(name);
  if (!stored) return std::string(if_missing);
  if (const auto* value = std::get_if<std::string>(&*stored)) return *value;
  refuse_type(name, "a string");
  return std::string(if_missing);
}

bool Hparams::flag(std::string_view key, bool if_missing) {
  const std::string name = full_key(key);
  const auto stored = checkpoint_.metadata(name);
  if (!stored) return if_missing;
  if (const auto* value = std::get_if<bool>(&*stored)) return *value;
  refuse_type(name, "true or false");
  return if_missing;
}

std::vector<std::int64_t> Hparams::integers(std::string_view key) {
  const std::string name = full_key(key);
  auto stored = checkpoint_.metadata(name);
  if (!stored) return {};
  if (auto* values = std::get_if<std::vector<std::int64_t>>(&*stored)) return std::move(*values);
  refuse_type(name, "an array of integers");
  return {};
}

}  // namespace dunlin
