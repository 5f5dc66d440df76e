// Text from outside for a terminal: nothing in it that a terminal obeys.
#pragma once

#include <string>
#include <string_view>

namespace dunlin::terminal {

// `text` with control characters as their Unicode pictures (ESC is U+241B), those of U+0080 to
// U+009F and broken UTF-8 as U+FFFD. Tabs and line feeds stay; carriage returns go.
std::string printable(std::string_view text);

// What a user typed or pasted, as a message may hold it: CR and CR LF are line feeds, other
// control characters but tabs go, and broken UTF-8 is U+FFFD.
std::string typed_text(std::string_view bytes);

}  // namespace dunlin::terminal
