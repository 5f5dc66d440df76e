// How a message of several lines is typed where Enter sends: a line that ends with a backslash
// goes on in the next, and """ begins and ends a text of any lines.
#pragma once

#include <string>
#include <string_view>

namespace dunlin::terminal {

enum class Continuation {
  kNone,       // the message is whole
  kBackslash,  // a line feed replaces the last byte
  kBlock,      // """ is open: a line feed is part of the text
};
Continuation continuation(std::string_view text);

// The message: without the marks of a block and without line feeds at its end.
std::string message_of(std::string_view text);

}  // namespace dunlin::terminal
