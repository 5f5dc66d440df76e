// Text that knows who wrote it. A Str is UTF-8 text plus the byte ranges that came from the
// request ("input"); everything outside them was written by the template. Ranges survive every
// operation of the language, so that the tokenizer can refuse control tokens inside input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/budget.h"

namespace dunlin::jinja {

// Bytes [begin, end).
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

class Str;
using StrPtr = std::shared_ptr<const Str>;

// Immutable once made. `text` is valid UTF-8. With a budget its bytes are charged for as long as
// it lives; without one (constants of a parsed template) it may be shared between threads.
class Str {
 public:
  Str(std::string text, std::vector<Span> input, bool markup, Budget* budget);
  ~Str();
  Str(const Str&) = delete;
  Str& operator=(const Str&) = delete;

  const std::string& text() const { return text_; }
  const std::vector<Span>& input() const { return input_; }  // sorted, disjoint, not empty
  bool ascii() const { return length_ == text_.size(); }
  std::size_t length() const { return length_; }  // in code points, as Python counts
  // Python's Markup: text that + and % join with escaped text. Set by |safe and |escape only.
  bool markup() const { return markup_; }

  // Byte offset of code point `index` (0 <= index <= length()).
  std::size_t offset_of(std::size_t index) const;
  // Code points before byte `offset`.
  std::size_t index_of(std::size_t offset) const;

 private:
  std::string text_;
  std::vector<Span> input_;
  std::size_t length_;
  bool markup_;
  Budget* budget_;
};

// Puts a Str together. Refuses (kLimit) to grow past the budget's string_bytes.
class StrBuilder {
 public:
  explicit StrBuilder(Budget& budget) : budget_(&budget) {}

  void append(std::string_view template_text) { put(template_text, false); }
  void append(char c) { put(std::string_view(&c, 1), false); }
  void put(std::string_view text, bool is_input);
  void append(const Str& s) { append(s, 0, s.text().size()); }
  void append(const Str& s, std::size_t begin, std::size_t end);  // bytes
  // `text` in place of bytes [begin, end) of `s`: input if any of them is.
  void append_mapped(const Str& s, std::size_t begin, std::size_t end, std::string_view text);
  void append_repeated(std::string_view template_text, std::size_t count);

  std::size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }
  const std::vector<Span>& input() const { return input_; }
  StrPtr finish(bool markup = false);  // leaves the builder empty

 private:
  void reserve_more(std::size_t bytes);
  void mark(std::size_t begin, std::size_t end);

  Budget* budget_;
  std::string text_;
  std::vector<Span> input_;
};

// True where any byte of [begin, end) is input.
bool touches_input(const Str& s, std::size_t begin, std::size_t end);

StrPtr make_str(Budget& budget, std::string text, bool is_input = false);
// Bytes [begin, end) of `s`, keeping its markup flag; `s` itself where that is all of it.
StrPtr substr(Budget& budget, const StrPtr& s, std::size_t begin, std::size_t end);

}  // namespace dunlin::jinja
