#include "terminal/prompt.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "terminal/edited_prompt.h"
#include "terminal/multi_line.h"
#include "terminal/printable.h"
#include "terminal/screen.h"
#include "terminal/signal_pipe.h"

namespace dunlin::terminal {
namespace {

// Lines as the terminal itself lets them be typed.
class PlainPrompt final : public Prompt {
 public:
  explicit PlainPrompt(int screen_fd) : screen_fd_(screen_fd) {}

  PromptInput read() override {
    std::string text;
    std::string_view prompt = ">>> ";
    while (true) {
      say(prompt);
      auto line = read_line();
      if (line.kind != PromptInput::Kind::kMessage) return line;
      text += line.text;
      switch (continuation(text)) {
        case Continuation::kNone: return {PromptInput::Kind::kMessage, message_of(text)};
        case Continuation::kBackslash: text.pop_back(); break;
        case Continuation::kBlock: break;
      }
      text += '\n';
      prompt = "... ";
    }
  }

  bool interrupted() override {
    bool found = false;
    while (const auto number = signals_.take()) found = found || *number == SIGINT;
    return found;
  }

 private:
  void say(std::string_view text) const {
    if (screen_fd_ < 0 || ::write(screen_fd_, text.data(), text.size()) >= 0) return;
  }

  // The terminal gives a line at a time, of at most 4096 bytes.
  PromptInput read_line() {
    std::string line;
    while (true) {
      pollfd waited[] = {{STDIN_FILENO, POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
      if (poll(waited, std::size(waited), -1) < 0 && errno != EINTR)
        return {PromptInput::Kind::kEnd, ""};
      if (interrupted()) {
        say("\n");
        return {PromptInput::Kind::kInterrupt, ""};
      }
      if (waited[0].revents == 0) continue;
      char bytes[4096];
      const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof(bytes));
      if (n < 0 && errno == EINTR) continue;
      const bool ended = n <= 0;
      if (!ended) line.append(bytes, static_cast<std::size_t>(n));
      if (ended && line.empty()) {
        say("\n");
        return {PromptInput::Kind::kEnd, ""};
      }
      if (!ended && !line.ends_with('\n')) continue;
      if (line.ends_with('\n')) line.pop_back();
      return {PromptInput::Kind::kMessage, typed_text(line)};
    }
  }

  SignalPipe signals_{SIGINT};
  const int screen_fd_;
};

// -1: there is nothing to draw on.
int screen_fd() {
  if (isatty(STDERR_FILENO) != 0) return STDERR_FILENO;
  return isatty(STDOUT_FILENO) != 0 ? STDOUT_FILENO : -1;
}

}  // namespace

std::unique_ptr<Prompt> open_prompt(const std::string& history_path) {
  DUNLIN_CHECK(isatty(STDIN_FILENO) != 0, "a prompt needs a terminal");
  const int screen = screen_fd();
  if (!can_move_cursor(screen)) return std::make_unique<PlainPrompt>(screen);
  return std::make_unique<EditedPrompt>(screen, history_path);
}

}  // namespace dunlin::terminal
