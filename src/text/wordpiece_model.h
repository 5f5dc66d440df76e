// WordPiece (Wu et al. 2016, as in BERT): the longest token that begins a word, then the longest
// continuation, and so on; a word that can't be cut so is unknown as a whole.
#pragma once

#include "text/token_model.h"
#include "text/token_table.h"

namespace dunlin::hf {

class WordPieceModel final : public TokenModel {
 public:
  // `table` outlives the model; tokens that may be used are findable.
  WordPieceModel(const TokenTable& table, TokenId unknown_id, std::string continuing_prefix,
                 std::size_t max_word_characters)
      : table_(table),
        unknown_id_(unknown_id),
        continuing_prefix_(std::move(continuing_prefix)),
        max_word_characters_(max_word_characters) {}

  void encode(std::string_view piece, EncodeScratch& scratch,
              std::vector<TokenId>& ids) const override;

 private:
  const TokenTable& table_;
  TokenId unknown_id_;
  std::string continuing_prefix_;
  std::size_t max_word_characters_;  // a longer word is unknown
};

}  // namespace dunlin::hf
