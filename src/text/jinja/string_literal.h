// The escapes of a quoted text in a template: those of Python.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dunlin::jinja {

// The text that stands between the quotes, escapes replaced. `pos` is where it starts in the
// source, for the Fault (kSyntax) on an escape that is none or makes half a surrogate pair.
std::string decode_literal(std::string_view body, std::uint32_t pos);

}  // namespace dunlin::jinja
