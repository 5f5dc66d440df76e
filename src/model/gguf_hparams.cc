#include "model/gguf_hparams.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace dunlin {

std::string GgufHparams::full_key(std::string_view key) const {
  return architecture_ + "." + std::string(key);
}

void GgufHparams::keep(const Status& status) {
  if (!error_) error_ = status;
}

void GgufHparams::refuse(StatusCode code, std::string message) {
  keep(Status(code, file_.path() + ": " + std::move(message)));
}

Outcome GgufHparams::outcome() const {
  if (error_) return tl::unexpected<Status>(*error_);
  return {};
}

std::optional<std::int64_t> GgufHparams::uniform_integer(const std::string& key) {
  const GgufEntry* entry = file_.find_entry(key);
  if (entry->type != GgufType::kArray) {
    if (gguf_type_is_integer(entry->type)) return entry->integer();
    refuse(StatusCode::kInvalidArgument,
           fmt::format("{} is a {}, but must be an integer", key, gguf_type_name(entry->type)));
    return std::nullopt;
  }
  const GgufArray values = entry->array();
  if (values.empty() || !gguf_type_is_integer(values.element_type())) {
    refuse(StatusCode::kInvalidArgument, key + " is not an array of integers");
    return std::nullopt;
  }
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values.integer(i) != values.integer(0)) {
      refuse(StatusCode::kUnimplemented,
             key + " differs between layers, which is not supported yet");
      return std::nullopt;
    }
  }
  return values.integer(0);
}

int GgufHparams::count(std::string_view key, int min, int max, std::optional<int> if_missing) {
  const std::string name = full_key(key);
  if (!file_.has(name)) {
    if (!if_missing) {
      refuse(StatusCode::kInvalidArgument, fmt::format("metadata key {} is missing", name));
    }
    return if_missing.value_or(min);
  }
  const std::optional<std::int64_t> value = uniform_integer(name);
  if (!value) return min;
  if (*value < min || *value > max) {
    refuse(StatusCode::kInvalidArgument,
           fmt::format("{} is {}, but must be from {} to {}", name, *value, min, max));
    return min;
  }
  return static_cast<int>(*value);
}

float GgufHparams::number(std::string_view key, std::optional<float> if_missing) {
  const std::string name = full_key(key);
  if (if_missing && !file_.has(name)) return *if_missing;
  const Result<float> value = file_.get_f32(name);
  if (!value) {
    keep(value.error());
    return 1.0f;
  }
  if (!std::isfinite(*value)) {
    refuse(StatusCode::kInvalidArgument,
           fmt::format("{} is {}, not a finite number", name, *value));
    return 1.0f;
  }
  return *value;
}

std::string_view GgufHparams::word(std::string_view key, std::string_view if_missing) {
  const Result<std::string_view> value = file_.get_string(full_key(key), if_missing);
  if (!value) {
    keep(value.error());
    return if_missing;
  }
  return *value;
}

}  // namespace dunlin
