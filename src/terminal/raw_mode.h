// The terminal of standard input in raw mode: each key comes as it is pressed, without echo, Ctrl-C
// included, and pastes are bracketed. What the program writes is still ended by plain line feeds.
// The terminal gets its settings back with the object, and when a signal ends the process. One
// object at a time.
#pragma once

#include <string_view>

#include "terminal/screen.h"

namespace dunlin::terminal {

class RawMode {
 public:
  // `fd` is the terminal that is drawn on. Standard input must be one too.
  explicit RawMode(int fd);
  ~RawMode();
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;

  void enter();    // again, after another program had the terminal
  void suspend();  // as Ctrl-Z does; returns, in raw mode, when the process is continued

  ScreenSize size() const { return screen_size(fd_); }
  void write(std::string_view bytes) const;

 private:
  void leave();

  const int fd_;
};

}  // namespace dunlin::terminal
