#include "terminal/edited_prompt.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <utility>

#include "terminal/multi_line.h"

namespace dunlin::terminal {
namespace {

constexpr std::string_view kPrompt = ">>> ";
constexpr std::string_view kMorePrompt = "... ";
constexpr int kSequenceTimeoutMs = 500;       // the bytes of one key come closer together
constexpr std::size_t kMaxTypedAhead = 4096;  // keys; more are dropped

}  // namespace

EditedPrompt::EditedPrompt(int screen_fd, const std::string& history_path)
    : signals_({SIGINT, SIGWINCH, SIGCONT}),
      terminal_(screen_fd),
      history_(history_path),
      editor_(history_.entries()) {}

PromptInput EditedPrompt::read() {
  editor_.begin();
  painter_.forget();
  while (true) {
    while (!keys_.empty()) {
      const Key key = std::move(keys_.front());
      keys_.pop_front();
      auto input = press(key);
      if (!input) continue;
      finish();
      return std::move(*input);
    }
    paint();
    if (ended_) {
      finish();
      return {PromptInput::Kind::kEnd, ""};
    }
    wait_for_keys();
  }
}

std::optional<PromptInput> EditedPrompt::press(const Key& key) {
  using Action = LineEditor::Action;
  switch (editor_.press(key)) {
    case Action::kNone: return std::nullopt;
    case Action::kSend: {
      const std::string& text = editor_.buffer().text();
      const std::size_t last = text.find_last_not_of(" \t\n");
      if (last != std::string::npos) history_.add(text.substr(0, last + 1));
      return PromptInput{PromptInput::Kind::kMessage, message_of(text)};
    }
    case Action::kInterrupt: return PromptInput{PromptInput::Kind::kInterrupt, ""};
    case Action::kEnd: return PromptInput{PromptInput::Kind::kEnd, ""};
    case Action::kClearScreen:
      terminal_.write("\x1b[H\x1b[2J");
      painter_.forget();
      return std::nullopt;
    case Action::kSuspend:
      finish();
      suspend();
      return std::nullopt;
    case Action::kTooLong: say_too_long(); return std::nullopt;
  }
  return std::nullopt;
}

void EditedPrompt::say_too_long() {
  finish();
  terminal_.write("(a message holds at most 1 MiB: the last piece was not taken)\n");
}

void EditedPrompt::suspend() {
  terminal_.suspend();
  painter_.forget();
}

bool EditedPrompt::interrupted() {
  const auto is_interrupt = [](const Key& key) { return key.kind == KeyKind::kInterrupt; };
  while (read_keys(0)) {
  }
  if (keys_.size() > kMaxTypedAhead) keys_.resize(kMaxTypedAhead);
  const auto last = std::find_if(keys_.rbegin(), keys_.rend(), is_interrupt);
  const bool found = last != keys_.rend();
  if (found) keys_.erase(keys_.begin(), last.base());
  if (!keys_.empty() && keys_.front().kind == KeyKind::kSuspend) {
    keys_.pop_front();
    suspend();
  }
  return found;
}

void EditedPrompt::wait_for_keys() {
  const bool pending = decoder_.pending();
  if (!read_keys(pending ? kSequenceTimeoutMs : -1) && pending) decoder_.abandon();
}

bool EditedPrompt::read_keys(int timeout_ms) {
  if (ended_) return false;
  pollfd waited[] = {{STDIN_FILENO, POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
  int ready = 0;
  do {
    ready = poll(waited, std::size(waited), timeout_ms);
  } while (ready < 0 && errno == EINTR);  // the pipe tells which signal it was
  if (ready <= 0) return false;
  if (waited[1].revents != 0) take_signals();
  if (waited[0].revents == 0) return true;
  char bytes[4096];
  const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof(bytes));
  if (n < 0 && errno == EINTR) return true;
  ended_ = n <= 0;
  if (ended_) return false;
  for (Key& key : decoder_.push({bytes, static_cast<std::size_t>(n)}))
    keys_.push_back(std::move(key));
  return true;
}

void EditedPrompt::take_signals() {
  while (const auto number = signals_.take()) {
    switch (*number) {
      case SIGINT: keys_.push_back({KeyKind::kInterrupt, ""}); break;
      case SIGCONT: terminal_.enter(); break;
      default:  // SIGWINCH: the next paint asks for the size
        break;
    }
  }
}

Layout EditedPrompt::layout(std::size_t cursor) const {
  return lay_out(kPrompt, kMorePrompt, editor_.buffer().text(), cursor, terminal_.size().columns);
}

void EditedPrompt::paint() {
  terminal_.write(painter_.paint(layout(editor_.buffer().cursor()), terminal_.size().rows));
}

void EditedPrompt::finish() { terminal_.write(painter_.finish(layout(0))); }

}  // namespace dunlin::terminal
