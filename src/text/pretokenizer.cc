#include "text/pretokenizer.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "text/regex_dialect.h"

namespace dunlin {

PreTokenizer::PreTokenizer(ByteAlphabet alphabet, std::vector<ByteRegex> expressions)
    : alphabet_(std::move(alphabet)), expressions_(std::move(expressions)) {}

Result<PreTokenizer> PreTokenizer::make(std::span<const std::string_view> expressions) {
  std::vector<ParsedRegex> parsed;
  std::vector<CodePointSet> sets;  // of all expressions, without duplicates
  for (std::string_view expression : expressions) {
    DUNLIN_ASSIGN(regex, parse_huggingface_regex(expression));
    std::vector<int> shared_idx;
    for (CodePointSet& set : regex.sets) {
      auto found = std::find(sets.begin(), sets.end(), set);
      if (found == sets.end()) found = sets.insert(found, std::move(set));
      shared_idx.push_back(static_cast<int>(found - sets.begin()));
    }
    for (RegexPiece& piece : regex.pieces) {
      if (piece.set_idx >= 0) piece.set_idx = shared_idx[static_cast<std::size_t>(piece.set_idx)];
    }
    parsed.push_back(std::move(regex));
  }
  DUNLIN_ASSIGN(alphabet, ByteAlphabet::make(sets));

  std::vector<ByteRegex> compiled;
  for (const ParsedRegex& regex : parsed) {
    std::string pattern;
    for (const RegexPiece& piece : regex.pieces) {
      pattern += piece.set_idx < 0 ? piece.syntax
                                   : alphabet.class_of_set(static_cast<std::size_t>(piece.set_idx));
    }
    DUNLIN_ASSIGN(byte_regex, ByteRegex::compile(pattern));
    compiled.push_back(std::move(byte_regex));
  }
  return PreTokenizer(std::move(alphabet), std::move(compiled));
}

void PreTokenizer::split(std::string_view text, Sink sink) const {
  if (text.empty()) return;
  ByteRegex::Scratch scratch;
  if (is_ascii(text)) return split_by(0, text, scratch, sink);

  // Pieces come in order, so the way back from characters to bytes is one walk along the text.
  const std::string bytes = alphabet_.translate(text);
  const char* next = text.data();
  split_by(0, bytes, scratch, [&](std::string_view piece) {
    const char* begin = next;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      next += static_cast<unsigned char>(piece[i]) < 0x80
                  ? 1
                  : utf8_length(static_cast<unsigned char>(*next));
    }
    sink(std::string_view(begin, static_cast<std::size_t>(next - begin)));
  });
}

void PreTokenizer::split_by(std::size_t expression_idx, std::string_view bytes,
                            ByteRegex::Scratch& scratch, Sink sink) const {
  // One character can't be cut further.
  if (bytes.size() <= 1 || expression_idx == expressions_.size()) {
    if (!bytes.empty()) sink(bytes);
    return;
  }
  const bool last = expression_idx + 1 == expressions_.size();
  const auto pass_on = [&](std::string_view piece) {
    if (last) {
      sink(piece);
    } else {
      split_by(expression_idx + 1, piece, scratch, sink);
    }
  };
  std::size_t pos = 0;
  ByteRegex::Match match{};
  while (pos < bytes.size() && expressions_[expression_idx].find(bytes, pos, scratch, match)) {
    if (match.begin > pos) pass_on(bytes.substr(pos, match.begin - pos));
    pass_on(bytes.substr(match.begin, match.end - match.begin));
    pos = match.end;
  }
  if (pos < bytes.size()) pass_on(bytes.substr(pos));
}

}  // namespace dunlin
