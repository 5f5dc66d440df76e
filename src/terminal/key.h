// What a user did at the keyboard.
#pragma once

#include <string>

namespace dunlin::terminal {

enum class KeyKind {
  kText,   // characters
  kPaste,  // text that came in one piece, line feeds included
  kEnter,
  kNewLine,  // a line feed inside the message: Alt-Enter, Ctrl-J
  kLeft,
  kRight,
  kUp,
  kDown,
  kHome,
  kEnd,
  kWordLeft,
  kWordRight,
  kBackspace,
  kDelete,
  kEraseWordLeft,
  kEraseWordRight,
  kEraseToStart,
  kEraseToEnd,
  kYank,      // puts back what was erased last
  kPrevious,  // of the history
  kNext,
  kClearScreen,
  kInterrupt,   // Ctrl-C
  kEndOfInput,  // Ctrl-D
  kSuspend,     // Ctrl-Z
};

struct Key {
  KeyKind kind;
  std::string text;  // kText and kPaste: valid UTF-8 without control characters but \n and \t
};

}  // namespace dunlin::terminal
