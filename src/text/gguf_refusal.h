// A part of tokenizer.json for which GGUF has no words.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "text/json_view.h"

namespace dunlin {

inline tl::unexpected<Status> gguf_cannot_say(const hf::JsonView& view, std::string_view what) {
  return fail(StatusCode::kUnimplemented,
              fmt::format("{}: {}, which a GGUF file can't say", view.path(), what));
}

}  // namespace dunlin
