// Signals as bytes of a pipe, so that poll() sees them whichever thread they hit. One object at a
// time; its signals have their former actions back when it goes.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace dunlin::terminal {

class SignalPipe {
 public:
  explicit SignalPipe(std::initializer_list<int> signals);
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  int fd() const { return fds_[0]; }  // readable where a signal has come; never read it
  std::optional<int> take();          // the next signal that came, without waiting

 private:
  int fds_[2] = {-1, -1};
  std::vector<std::pair<int, struct sigaction>> previous_;
};

}  // namespace dunlin::terminal
