#include "text/bpe_tokenizer.h"

#include <algorithm>

#include "text/bpe_load.h"
#include "text/pretokenizer_table.h"

namespace dunlin {

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::make(const Vocab& vocab) {
  const PreTokenizerSpec* spec = find_pretokenizer_spec(vocab.pretokenizer);
  if (spec == nullptr) return invalid("tokenizer.ggml.pre names no known pre-tokenizer");
  DUNLIN_ASSIGN(pretokenizer, PreTokenizer::make(spec->expressions));
  DUNLIN_ASSIGN(table, load_bpe_tokens(vocab));
  DUNLIN_ASSIGN(merges, load_bpe_merges(vocab, table));
  std::unique_ptr<BpeTokenizer> tokenizer(
      new BpeTokenizer(vocab, std::move(table), std::move(merges), std::move(pretokenizer),
                       spec->whole_pieces_first, vocab.adds_bos.value_or(spec->adds_bos)));
  DUNLIN_TRY(tokenizer->check_specials());
  return tokenizer;
}

BpeTokenizer::BpeTokenizer(const Vocab& vocab, TokenTable table, MergeTable merges,
                           PreTokenizer pretokenizer, bool whole_pieces_first, bool adds_bos)
    : VocabTokenizer(vocab, std::move(table), adds_bos),
      merges_(std::move(merges)),
      pretokenizer_(std::move(pretokenizer)),
      whole_pieces_first_(whole_pieces_first),
      whole_tokens_(vocab.size()) {
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const char text = static_cast<char>(byte);
    byte_ids_[byte] = this->table().find(std::string_view(&text, 1));
  }
}

std::size_t BpeTokenizer::fewest_tokens(std::string_view text) const {
  // A byte without a token may leave nothing.
  const auto has_token = [this](char byte) {
    return byte_ids_[static_cast<unsigned char>(byte)] >= 0;
  };
  const auto said = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), has_token));
  return said / std::max<std::size_t>(longest_text(), 1);
}

std::string BpeTokenizer::token_bytes(TokenId id, bool render_special) const {
  if (!is_id(id)) return {};
  const bool is_text = type(id) != TokenType::kUnused && !is_control(id);
  return is_text || render_special ? std::string(table().text(id)) : std::string();
}

void BpeTokenizer::encode_plain(std::string_view text, bool /*at_start*/, MergeWorkspace& work,
                                std::vector<TokenId>& ids) const {
  pretokenizer_.split(text, [&](std::string_view piece) { encode_piece(piece, work, ids); });
}

void BpeTokenizer::encode_piece(std::string_view piece, MergeWorkspace& work,
                                std::vector<TokenId>& ids) const {
  const TokenId whole = table().find(piece);
  if (whole >= 0) {
    if (whole_pieces_first_ || whole_tokens_.get(whole) == WholeTokenCache::kWhole) {
      ids.push_back(whole);
      return;
    }
  }
  merge_piece(piece, work);
  if (whole >= 0) {
    whole_tokens_.set(whole, work.symbols.size() == 1 && work.symbols[0].id == whole);
  }
  for (const MergeSymbol& symbol : work.symbols) {
    // A byte without a token: a vocabulary that can't say it.
    const TokenId id = symbol.id >= 0 ? symbol.id : unknown_id();
    if (id >= 0) ids.push_back(id);
  }
}

void BpeTokenizer::merge_piece(std::string_view piece, MergeWorkspace& work) const {
  work.symbols.clear();
  for (std::uint32_t i = 0; i < piece.size(); ++i) {
    work.symbols.push_back({byte_ids_[static_cast<unsigned char>(piece[i])], i, i + 1});
  }
  merge_symbols(work, [&](const MergeSymbol& left, const MergeSymbol& right) {
    if (left.id < 0 || right.id < 0) return MergeTable::Merge{MergeTable::kNone, -1};
    return merges_.find(left.id, right.id);
  });
}

}  // namespace dunlin
