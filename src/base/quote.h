// Names from outside in an error message of one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dunlin {

// `text` in single quotes: control characters, quotes, backslashes and bytes that are no UTF-8 as
// \xNN, and cut with "..." where it is longer than max_bytes.
std::string quote_for_message(std::string_view text, std::size_t max_bytes = 100);

}  // namespace dunlin
