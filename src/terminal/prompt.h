// Where a program that talks in the terminal gets its messages from. On a terminal: with line
// editing, history, messages of several lines and bracketed pastes. Where the terminal can't
// (TERM=dumb) or nothing can be drawn on (neither standard error nor output is a terminal): line by
// line, edited by the terminal itself.
#pragma once

#include <memory>
#include <string>

namespace dunlin::terminal {

struct PromptInput {
  enum class Kind {
    kMessage,    // `text`: valid UTF-8 without control characters but \n and \t
    kInterrupt,  // Ctrl-C, and nothing was typed
    kEnd,        // Ctrl-D, or the terminal is gone
  };
  Kind kind = Kind::kEnd;
  std::string text;
};

class Prompt {
 public:
  virtual ~Prompt() = default;

  // Waits for a message.
  virtual PromptInput read() = 0;

  // While the program is busy: true where Ctrl-C (or SIGINT) has come since the last call, which
  // also drops what was typed ahead. Never waits. Other keys are kept for read().
  virtual bool interrupted() = 0;

  // Something that the user should know once, or "".
  virtual std::string problem() const { return ""; }
};

// Standard input must be a terminal. One at a time. `history_path` "": no history on disk.
std::unique_ptr<Prompt> open_prompt(const std::string& history_path);

}  // namespace dunlin::terminal
