// Unigram (Kudo 2018): of all ways to cut a piece into tokens, the one with the largest sum of
// scores, by Viterbi's algorithm.
#pragma once

#include <array>

#include "text/byte_trie.h"
#include "text/token_model.h"
#include "text/token_table.h"

namespace dunlin::hf {

class UnigramModel final : public TokenModel {
 public:
  // `table` holds all texts, those findable that may be used, and outlives the model; `scores`
  // [table.size()]. `byte_ids` [256], -1 where there is none; used only where all bytes of what is
  // unknown have one.
  UnigramModel(const TokenTable& table, std::vector<double> scores, TokenId unknown_id,
               std::array<TokenId, 256> byte_ids);

  void encode(std::string_view piece, EncodeScratch& scratch,
              std::vector<TokenId>& ids) const override;

 private:
  void find_best_path(std::string_view piece, EncodeScratch& scratch) const;
  void append_unknown(std::string_view text, std::vector<TokenId>& ids) const;

  const TokenTable& table_;
  std::vector<double> scores_;
  double unknown_score_;
  TokenId unknown_id_;
  std::array<TokenId, 256> byte_ids_;
  ByteTrie trie_;
};

}  // namespace dunlin::hf
