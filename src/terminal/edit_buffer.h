// A text of one or more lines and a cursor in it. Moves and erases whole graphemes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dunlin::terminal {

class EditBuffer {
 public:
  const std::string& text() const { return text_; }  // valid UTF-8
  std::size_t cursor() const { return cursor_; }     // bytes, at the border of a grapheme
  bool at_end() const { return cursor_ == text_.size(); }

  void set(std::string text);  // the cursor goes to the end
  void insert(std::string_view text);

  // Each stops at the ends of the text.
  void left();
  void right();
  void word_left();
  void word_right();
  void line_start();
  void line_end();
  // To the same column, counted in graphemes, of the line above or below; false where none is.
  bool up();
  bool down();

  void backspace();
  void erase_right();
  // These keep what they erase: erased().
  void erase_word_left();
  void erase_word_right();
  void erase_to_line_start();
  void erase_to_line_end();
  void erase_all();
  const std::string& erased() const { return erased_; }

 private:
  std::size_t start_of_line(std::size_t pos) const;
  std::size_t end_of_line(std::size_t pos) const;
  std::size_t word_start() const;  // of the word before the cursor
  std::size_t word_end() const;    // of the word behind it
  int column() const;
  void go_to_column(std::size_t line_start, int column);
  void erase(std::size_t begin, std::size_t end);
  void cut(std::size_t begin, std::size_t end);

  std::string text_;
  std::size_t cursor_ = 0;
  std::string erased_;
};

}  // namespace dunlin::terminal
