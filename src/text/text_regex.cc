#include "text/text_regex.h"

#include <string>

#include "base/utf8.h"

namespace dunlin {

Result<TextRegex> TextRegex::make(std::string_view expression) {
  DUNLIN_ASSIGN(parsed, parse_huggingface_regex(expression));
  return make(parsed);
}

Result<TextRegex> TextRegex::make(const ParsedRegex& parsed) {
  DUNLIN_ASSIGN(alphabet, ByteAlphabet::make(parsed.sets));
  std::string pattern;
  for (const RegexPiece& piece : parsed.pieces) {
    pattern += piece.set_idx < 0 ? piece.syntax
                                 : alphabet.class_of_set(static_cast<std::size_t>(piece.set_idx));
  }
  DUNLIN_ASSIGN(expression, ByteRegex::compile(pattern));
  return TextRegex(std::move(alphabet), std::move(expression));
}

void TextRegex::for_each_match(std::string_view text, ByteRegex::Scratch& scratch,
                               Sink sink) const {
  const bool ascii = is_ascii(text);
  std::string translated;
  if (!ascii) translated = alphabet_.translate(text);
  const std::string_view bytes = ascii ? text : std::string_view(translated);
  // Matches come in order, so the way back from characters to bytes is one walk along the text.
  std::size_t walked_chars = 0;
  std::size_t walked_bytes = 0;
  const auto offset_of = [&](std::size_t num_chars) {
    if (ascii) return num_chars;
    for (; walked_chars < num_chars; ++walked_chars) {
      walked_bytes +=
          static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(text[walked_bytes])));
    }
    return walked_bytes;
  };
  std::size_t pos = 0;
  std::size_t last_end = std::string_view::npos;
  ByteRegex::Match match{};
  while (pos <= bytes.size() && expression_.find(bytes, pos, scratch, match, /*or_empty=*/true)) {
    pos = match.end;
    if (match.begin == match.end) {
      ++pos;
      if (match.end == last_end) continue;
    }
    last_end = match.end;
    const std::size_t begin = offset_of(match.begin);
    sink(begin, offset_of(match.end));
  }
}

}  // namespace dunlin
