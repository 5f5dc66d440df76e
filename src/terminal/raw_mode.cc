#include "terminal/raw_mode.h"

#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "base/check.h"
#include "base/write_all.h"

namespace dunlin::terminal {
namespace {

constexpr std::string_view kPastesOn = "\x1b[?2004h";
constexpr std::string_view kPastesOff = "\x1b[?2004l";

// What ends a process and can be caught.
constexpr int kFatalSignals[] = {SIGTERM, SIGHUP,  SIGQUIT, SIGABRT,
                                 SIGBUS,  SIGSEGV, SIGILL,  SIGFPE};
constexpr std::size_t kNumFatal = sizeof(kFatalSignals) / sizeof(kFatalSignals[0]);

// What the signal handler needs. Written before the handlers are installed.
struct Saved {
  std::atomic<int> fd{-1};
  termios settings{};
  struct sigaction actions[kNumFatal]{};
};
constinit Saved g_saved;

// Gives the settings back, then lets the former action end the process: a fault happens again, any
// other signal is raised again.
void restore_and_pass_on(int number, siginfo_t* info, void*) {
  write_all(g_saved.fd.load(), kPastesOff);
  write_all(g_saved.fd.load(), "\r\n");
  tcsetattr(STDIN_FILENO, TCSANOW, &g_saved.settings);
  for (std::size_t i = 0; i < kNumFatal; ++i) {
    if (kFatalSignals[i] == number) sigaction(number, &g_saved.actions[i], nullptr);
  }
  const bool fault = info->si_code > 0 && (number == SIGBUS || number == SIGSEGV ||
                                           number == SIGILL || number == SIGFPE);
  if (!fault) raise(number);
}

}  // namespace

RawMode::RawMode(int fd) : fd_(fd) {
  DUNLIN_CHECK(g_saved.fd.load() < 0, "the terminal is in raw mode already");
  DUNLIN_CHECK(tcgetattr(STDIN_FILENO, &g_saved.settings) == 0, "standard input is no terminal");
  g_saved.fd = fd;
  for (std::size_t i = 0; i < kNumFatal; ++i) {
    struct sigaction action{};
    action.sa_sigaction = restore_and_pass_on;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);  // SIGTTOU too: a process in the background may give back
    sigaction(kFatalSignals[i], nullptr, &g_saved.actions[i]);
    if (g_saved.actions[i].sa_handler != SIG_IGN) sigaction(kFatalSignals[i], &action, nullptr);
  }
  enter();
}

RawMode::~RawMode() {
  leave();
  for (std::size_t i = 0; i < kNumFatal; ++i)
    sigaction(kFatalSignals[i], &g_saved.actions[i], nullptr);
  g_saved.fd = -1;
}

void RawMode::enter() {
  termios raw = g_saved.settings;
  raw.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INLCR | IGNCR | ISTRIP | IXON);
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG | IEXTEN);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  write(kPastesOn);
}

void RawMode::leave() {
  write(kPastesOff);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &g_saved.settings);
}

void RawMode::suspend() {
  leave();
  kill(0, SIGTSTP);  // the whole job, as the terminal's own Ctrl-Z
  enter();
}

void RawMode::write(std::string_view bytes) const { write_all(fd_, bytes); }

}  // namespace dunlin::terminal
