// A request body to JSON, with limits that hold before anything is built from it.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "api/api_error.h"

namespace dunlin {

// Nested brackets, keys of one object, and keys in all: the last two because ordered_json looks
// keys up one by one, so that an object of k keys costs k * k / 2 comparisons.
inline constexpr int kMaxJsonDepth = 100;
inline constexpr std::size_t kMaxObjectKeys = 4096;
inline constexpr std::size_t kMaxTotalKeys = 100'000;

// The body as a JSON object. 400 with the byte where it stops being JSON, is not UTF-8, or passes
// a limit. Of equal keys the last one counts.
ApiResult<std::shared_ptr<const nlohmann::ordered_json>> parse_json_body(std::string_view body);

}  // namespace dunlin
