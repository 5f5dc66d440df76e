#include "terminal/edit_buffer.h"

#include <algorithm>
#include <utility>

#include "terminal/graphemes.h"

namespace dunlin::terminal {
namespace {

// Letters and digits, and all that is not ASCII, make words.
bool in_word(char byte) {
  const auto b = static_cast<unsigned char>(byte);
  return b >= 0x80 || (b >= '0' && b <= '9') || ((b | 0x20) >= 'a' && (b | 0x20) <= 'z');
}

}  // namespace

void EditBuffer::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void EditBuffer::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
  // A combining mark may have joined what stands behind it.
  if (cursor_ > 0 && !at_end()) cursor_ = next_grapheme(text_, previous_grapheme(text_, cursor_));
}

void EditBuffer::left() {
  if (cursor_ > 0) cursor_ = previous_grapheme(text_, cursor_);
}

void EditBuffer::right() {
  if (!at_end()) cursor_ = next_grapheme(text_, cursor_);
}

std::size_t EditBuffer::word_start() const {
  std::size_t pos = cursor_;
  while (pos > 0 && !in_word(text_[pos - 1])) --pos;
  while (pos > 0 && in_word(text_[pos - 1])) --pos;
  return pos;
}

std::size_t EditBuffer::word_end() const {
  std::size_t pos = cursor_;
  while (pos < text_.size() && !in_word(text_[pos])) ++pos;
  while (pos < text_.size() && in_word(text_[pos])) ++pos;
  return pos;
}

void EditBuffer::word_left() { cursor_ = word_start(); }
void EditBuffer::word_right() { cursor_ = word_end(); }

std::size_t EditBuffer::start_of_line(std::size_t pos) const {
  return pos == 0 ? 0 : text_.rfind('\n', pos - 1) + 1;  // npos + 1 is 0
}

std::size_t EditBuffer::end_of_line(std::size_t pos) const {
  return std::min(text_.find('\n', pos), text_.size());
}

void EditBuffer::line_start() { cursor_ = start_of_line(cursor_); }
void EditBuffer::line_end() { cursor_ = end_of_line(cursor_); }

int EditBuffer::column() const {
  int column = 0;
  for (std::size_t pos = start_of_line(cursor_); pos < cursor_; ++column)
    pos = next_grapheme(text_, pos);
  return column;
}

void EditBuffer::go_to_column(std::size_t line_start, int column) {
  const std::size_t end = end_of_line(line_start);
  cursor_ = line_start;
  for (; column > 0 && cursor_ < end; --column) cursor_ = next_grapheme(text_, cursor_);
}

bool EditBuffer::up() {
  const std::size_t start = start_of_line(cursor_);
  if (start == 0) return false;
  go_to_column(start_of_line(start - 1), column());
  return true;
}

bool EditBuffer::down() {
  const std::size_t end = end_of_line(cursor_);
  if (end == text_.size()) return false;
  go_to_column(end + 1, column());
  return true;
}

void EditBuffer::erase(std::size_t begin, std::size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void EditBuffer::cut(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  erased_ = text_.substr(begin, end - begin);
  erase(begin, end);
}

void EditBuffer::backspace() {
  if (cursor_ > 0) erase(previous_grapheme(text_, cursor_), cursor_);
}

void EditBuffer::erase_right() {
  if (!at_end()) erase(cursor_, next_grapheme(text_, cursor_));
}

void EditBuffer::erase_word_left() { cut(word_start(), cursor_); }
void EditBuffer::erase_word_right() { cut(cursor_, word_end()); }
void EditBuffer::erase_to_line_start() { cut(start_of_line(cursor_), cursor_); }
void EditBuffer::erase_to_line_end() { cut(cursor_, end_of_line(cursor_)); }
void EditBuffer::erase_all() { cut(0, text_.size()); }

}  // namespace dunlin::terminal
