#include "terminal/line_editor.h"

#include "terminal/multi_line.h"

namespace dunlin::terminal {

LineEditor::Action LineEditor::press(const Key& key) {
  switch (key.kind) {
    case KeyKind::kText:
    case KeyKind::kPaste: return insert(key.text);
    case KeyKind::kNewLine: return insert("\n");
    case KeyKind::kEnter: return enter();
    case KeyKind::kInterrupt: return interrupt();
    case KeyKind::kEndOfInput:
      if (buffer_.text().empty()) return Action::kEnd;
      buffer_.erase_right();
      return Action::kNone;
    case KeyKind::kClearScreen: return Action::kClearScreen;
    case KeyKind::kSuspend: return Action::kSuspend;
    case KeyKind::kYank: return insert(buffer_.erased());
    default: edit(key.kind); return Action::kNone;
  }
}

void LineEditor::begin() {
  buffer_.set("");
  draft_.clear();
  entry_ = history_.size();
}

LineEditor::Action LineEditor::insert(std::string_view text) {
  if (buffer_.text().size() + text.size() > kMaxBytes) return Action::kTooLong;
  buffer_.insert(text);
  return Action::kNone;
}

LineEditor::Action LineEditor::enter() {
  const Continuation next = continuation(buffer_.text());
  if (next == Continuation::kBlock) return insert("\n");
  if (next == Continuation::kNone || !buffer_.at_end()) return Action::kSend;
  buffer_.backspace();
  return insert("\n");
}

LineEditor::Action LineEditor::interrupt() {
  if (buffer_.text().empty()) return Action::kInterrupt;
  buffer_.erase_all();
  draft_.clear();
  entry_ = history_.size();
  return Action::kNone;
}

void LineEditor::edit(KeyKind kind) {
  switch (kind) {
    case KeyKind::kLeft: return buffer_.left();
    case KeyKind::kRight: return buffer_.right();
    case KeyKind::kHome: return buffer_.line_start();
    case KeyKind::kEnd: return buffer_.line_end();
    case KeyKind::kWordLeft: return buffer_.word_left();
    case KeyKind::kWordRight: return buffer_.word_right();
    case KeyKind::kBackspace: return buffer_.backspace();
    case KeyKind::kDelete: return buffer_.erase_right();
    case KeyKind::kEraseWordLeft: return buffer_.erase_word_left();
    case KeyKind::kEraseWordRight: return buffer_.erase_word_right();
    case KeyKind::kEraseToStart: return buffer_.erase_to_line_start();
    case KeyKind::kEraseToEnd: return buffer_.erase_to_line_end();
    case KeyKind::kPrevious: return previous();
    case KeyKind::kNext: return next();
    case KeyKind::kUp:
      if (!buffer_.up()) previous();
      return;
    case KeyKind::kDown:
      if (!buffer_.down()) next();
      return;
    default: return;
  }
}

void LineEditor::previous() {
  if (entry_ == 0) return;
  if (entry_ == history_.size()) draft_ = buffer_.text();
  buffer_.set(history_[--entry_]);
}

void LineEditor::next() {
  if (entry_ == history_.size()) return;
  ++entry_;
  buffer_.set(entry_ == history_.size() ? draft_ : history_[entry_]);
}

}  // namespace dunlin::terminal
