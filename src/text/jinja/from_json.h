// JSON of a request as values of a template.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "text/jinja/runtime.h"

namespace dunlin::jinja {

// With `is_input`, every text inside (keys too) is marked as input. Faults on text that is not
// UTF-8 and on nesting deeper than Limits::value_depth.
Value from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool is_input);

}  // namespace dunlin::jinja
