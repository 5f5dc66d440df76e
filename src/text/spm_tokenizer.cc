#include "text/spm_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/utf8.h"

namespace dunlin {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

// Ascending where scores fall: the bits of an IEEE float order like an integer once the sign is
// turned over.
std::uint32_t rank_of_score(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 becomes 0
  const std::uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> SpmTokenizer::make(const Vocab& vocab) {
  if (vocab.scores.size() != vocab.tokens.size()) {
    return invalid("tokenizer.ggml.scores: one score for each token is needed");
  }
  std::size_t num_bytes = 0;
  for (std::string_view token : vocab.tokens) num_bytes += token.size();
  TokenTable table(vocab.tokens.size(), num_bytes);
  std::vector<TokenId> normal;
  normal.reserve(vocab.tokens.size());
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const TokenId id = table.add(vocab.tokens[i]);
    if (vocab.types[i] == TokenType::kNormal && !vocab.tokens[i].empty()) normal.push_back(id);
  }
  if (const auto twins = table.insert(normal)) {
    return invalid(fmt::format("tokenizer.ggml.tokens: tokens {} and {} are both '{}'",
                               twins->first, twins->second, table.text(twins->first)));
  }
  std::unique_ptr<SpmTokenizer> tokenizer(new SpmTokenizer(vocab, std::move(table)));
  DUNLIN_TRY(tokenizer->check_specials());
  DUNLIN_TRY(tokenizer->read_byte_tokens());
  tokenizer->find_inner_spaces();
  return tokenizer;
}

SpmTokenizer::SpmTokenizer(const Vocab& vocab, TokenTable table)
    : VocabTokenizer(vocab, std::move(table), vocab.adds_bos.value_or(true)),
      adds_space_prefix_(vocab.adds_space_prefix),
      prepend_scheme_(vocab.prepend_scheme),
      ranks_(vocab.tokens.size()),
      byte_of_(vocab.tokens.size()),
      whole_tokens_(vocab.size()) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i] = rank_of_score(vocab.scores[i]);
  byte_ids_.fill(-1);
}

Outcome SpmTokenizer::read_byte_tokens() {
  for (TokenId id = 0; id < vocab_size(); ++id) {
    if (type(id) != TokenType::kByte) continue;
    const std::string_view text = table().text(id);
    unsigned byte = 0;
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>' ||
        std::from_chars(text.data() + 3, text.data() + 5, byte, 16).ptr != text.data() + 5) {
      return invalid(
          fmt::format("tokenizer.ggml.tokens: token {} is of type byte but named '{}', "
                      "not like <0x0A>",
                      id, text));
    }
    byte_ids_[byte] = id;
    byte_of_[static_cast<std::size_t>(id)] = static_cast<std::uint8_t>(byte);
  }
  return {};
}

std::size_t SpmTokenizer::fewest_tokens(std::string_view text) const {
  // A character without a token becomes those of its bytes or an unknown one; spaces only grow.
  constexpr std::size_t kCharacter = 4;
  const bool drops = unknown_id() < 0 && !has_all_utf8_bytes(byte_ids_);
  return drops ? 0 : text.size() / std::max(longest_text(), kCharacter);
}

void SpmTokenizer::find_inner_spaces() {
  for (TokenId id = 0; id < vocab_size(); ++id) {
    if (type(id) != TokenType::kNormal) continue;
    const std::string_view text = table().text(id);
    for (std::size_t pos = text.find(kSpace, 1); pos != std::string_view::npos;
         pos = text.find(kSpace, pos + 1)) {
      before_inner_space_[static_cast<unsigned char>(text[pos - 1])] = true;
    }
  }
}

std::string SpmTokenizer::token_bytes(TokenId id, bool render_special) const {
  if (!is_id(id)) return {};
  const std::string_view text = table().text(id);
  switch (type(id)) {
    case TokenType::kByte:
      return std::string(1, static_cast<char>(byte_of_[static_cast<std::size_t>(id)]));
    case TokenType::kUserDefined: return std::string(text);
    case TokenType::kNormal: break;
    default: return render_special ? std::string(text) : std::string();
  }
  std::string out;
  std::size_t pos = 0;
  for (std::size_t space; (space = text.find(kSpace, pos)) != std::string_view::npos;) {
    out.append(text.substr(pos, space - pos)).push_back(' ');
    pos = space + kSpace.size();
  }
  return out.append(text.substr(pos));
}

bool SpmTokenizer::prepends_space(std::string_view text, bool at_start) const {
  if (!prepend_scheme_) return adds_space_prefix_;
  const bool wanted = *prepend_scheme_ == PrependScheme::kAlways ||
                      (*prepend_scheme_ == PrependScheme::kFirst && at_start);
  return wanted && !text.starts_with(' ') && !text.starts_with(kSpace);
}

void SpmTokenizer::encode_plain(std::string_view text, bool at_start, MergeWorkspace& work,
                                std::vector<TokenId>& ids) const {
  std::string normalized;
  normalized.reserve(text.size() + text.size() / 2 + kSpace.size());
  std::size_t piece_begin = 0;
  const auto end_piece = [&] {
    const auto piece = std::string_view(normalized).substr(piece_begin);
    if (!piece.empty()) encode_piece(piece, work, ids);
    piece_begin = normalized.size();
  };
  const auto append_space = [&] {
    if (!normalized.empty() &&
        !before_inner_space_[static_cast<unsigned char>(normalized.back())]) {
      end_piece();
    }
    normalized += kSpace;
  };
  if (prepends_space(text, at_start)) append_space();
  for (std::size_t pos = 0; pos < text.size();) {
    if (text[pos] == ' ') {
      append_space();
      ++pos;
      continue;
    }
    const std::size_t end = std::min(text.find(' ', pos), text.size());
    normalized.append(text.substr(pos, end - pos));
    pos = end;
  }
  end_piece();
}

void SpmTokenizer::encode_piece(std::string_view piece, MergeWorkspace& work,
                                std::vector<TokenId>& ids) const {
  const TokenId whole = table().find(piece);
  if (whole >= 0 && whole_tokens_.get(whole) == WholeTokenCache::kWhole) {
    ids.push_back(whole);
    return;
  }
  merge_piece(piece, work);
  if (whole >= 0) {
    whole_tokens_.set(whole, work.symbols.size() == 1 && work.symbols[0].id == whole);
  }
  for (const MergeSymbol& symbol : work.symbols) {
    if (symbol.id >= 0) {
      ids.push_back(symbol.id);
    } else {
      spell(piece.substr(symbol.begin, symbol.end - symbol.begin), ids);
    }
  }
}

void SpmTokenizer::merge_piece(std::string_view piece, MergeWorkspace& work) const {
  work.symbols.clear();
  for (std::uint32_t pos = 0; pos < piece.size();) {
    const auto size =
        static_cast<std::uint32_t>(utf8_length(static_cast<unsigned char>(piece[pos])));
    work.symbols.push_back({table().find(piece.substr(pos, size)), pos, pos + size});
    pos += size;
  }
  merge_symbols(work, [&](const MergeSymbol& left, const MergeSymbol& right) {
    const TokenId id = table().find(piece.substr(left.begin, right.end - left.begin));
    return id < 0 ? MergeTable::Merge{MergeTable::kNone, -1}
                  : MergeTable::Merge{ranks_[static_cast<std::size_t>(id)], id};
  });
}

void SpmTokenizer::spell(std::string_view character, std::vector<TokenId>& ids) const {
  bool has_all_bytes = true;
  for (const char c : character) {
    has_all_bytes = has_all_bytes && byte_ids_[static_cast<unsigned char>(c)] >= 0;
  }
  if (has_all_bytes) {
    for (const char c : character) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  } else if (unknown_id() >= 0) {
    ids.push_back(unknown_id());
  }
}

}  // namespace dunlin
