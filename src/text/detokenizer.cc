#include "text/detokenizer.h"

#include "base/utf8.h"

namespace dunlin {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool at_text_start, bool render_special)
    : tokenizer_(tokenizer),
      strips_at_start_(at_text_start && tokenizer.strips_leading_space()),
      render_special_(render_special),
      strip_space_(strips_at_start_) {}

std::string Detokenizer::push(TokenId id) {
  const std::string bytes = tokenizer_.token_bytes(id, render_special_);
  if (bytes.empty()) return {};
  const bool drop_space = strip_space_ && bytes[0] == ' ';
  strip_space_ = false;
  pending_.append(bytes, drop_space ? 1 : 0);

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
  return text;
}

std::string Detokenizer::finish() {
  std::string text = repair_utf8(pending_);
  pending_.clear();
  strip_space_ = strips_at_start_;
  return text;
}

}  // namespace dunlin
