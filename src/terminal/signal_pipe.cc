#include "terminal/signal_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace dunlin::terminal {
namespace {

std::atomic<int> g_write_fd{-1};  // a signal handler can reach nothing else

void pass_on(int signal_number) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal_number);
  // A full pipe has signals enough to tell.
  if (write(g_write_fd.load(), &byte, 1) < 0) errno = saved;
  errno = saved;
}

}  // namespace

SignalPipe::SignalPipe(std::initializer_list<int> signals) {
  DUNLIN_CHECK(g_write_fd.load() < 0, "a second signal pipe");
  DUNLIN_CHECK(pipe2(fds_, O_CLOEXEC | O_NONBLOCK) == 0, "no pipe for signals");
  g_write_fd = fds_[1];
  for (const int number : signals) {
    struct sigaction action{}, previous{};
    action.sa_handler = pass_on;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, &previous);
    previous_.emplace_back(number, previous);
  }
}

SignalPipe::~SignalPipe() {
  for (const auto& [number, action] : previous_) sigaction(number, &action, nullptr);
  g_write_fd = -1;
  close(fds_[0]);
  close(fds_[1]);
}

std::optional<int> SignalPipe::take() {
  unsigned char byte = 0;
  if (read(fds_[0], &byte, 1) != 1) return std::nullopt;
  return byte;
}

}  // namespace dunlin::terminal
