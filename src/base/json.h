// Parses JSON from files that nobody vouches for.
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "dunlin/status.h"

namespace dunlin {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{64} << 20;
  std::size_t max_values = std::size_t{4} << 20;  // elements and members, at any depth
  int max_depth = 100;                            // nested brackets
};

// The value of `text`, in time that is linear in it but for the sorting of keys. kInvalidArgument,
// naming the byte where that is known, where it is no JSON, is not UTF-8, passes a limit, or an
// object has a key twice: readers differ in which one counts.
Result<nlohmann::json> parse_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace dunlin
