#include "text/detokenizer.h"

#include "base/utf8.h"

namespace dunlin {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool at_text_start, bool render_special)
    : tokenizer_(tokenizer),
      has_start_(at_text_start),
      render_special_(render_special),
      at_start_(at_text_start) {}

std::string Detokenizer::push(TokenId id) {
  const std::string bytes = tokenizer_.token_bytes(id, render_special_);
  if (at_start_) {
    const std::string first = tokenizer_.first_token_bytes(id, render_special_);
    at_start_ = bytes.empty() && first.empty();
    pending_ += first;
  } else {
    pending_ += bytes;
  }

  // Only the end can be unfinished: everything before it is certain.
  std::size_t certain = 0;
  while (certain < pending_.size()) {
    certain += find_broken_utf8(std::string_view(pending_).substr(certain));
    if (certain == pending_.size()) break;
    const Utf8Char c = decode_utf8(pending_, certain);
    if (c.state == Utf8State::kIncomplete) break;
    certain += static_cast<std::size_t>(c.num_bytes);
  }
  std::string text = repair_utf8(std::string_view(pending_).substr(0, certain));
  pending_.erase(0, certain);
  if (tokenizer_.strips_trailing_space() && !text.empty()) {
    if (space_waits_) text.insert(0, 1, ' ');
    space_waits_ = text.ends_with(' ');
    if (space_waits_) text.pop_back();
  }
  return text;
}

std::string Detokenizer::finish() {
  std::string text = repair_utf8(pending_);
  if (space_waits_ && !text.empty()) text.insert(0, 1, ' ');
  space_waits_ = false;
  pending_.clear();
  at_start_ = has_start_;
  return text;
}

}  // namespace dunlin
