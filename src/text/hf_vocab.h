// All tokens of a tokenizer.json by id: the model's, and those added to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "text/added_tokens.h"
#include "text/hf_file.h"
#include "text/hf_tokenizer_config.h"
#include "text/vocab.h"

namespace dunlin::hf {

struct HfVocab {
  std::vector<std::string> texts;  // ids are indices; empty where an id has no token
  std::vector<TokenType> types;    // [size()] control: special; user-defined: added otherwise
  std::vector<double> scores;      // [size()] where the model has scores
  std::vector<bool> in_model;      // [size()]
  // In the order in which one wins over a later one of the same text: special ones first.
  std::vector<AddedToken> added;
  TokenId bos_id = -1;
  TokenId eos_id = -1;
  std::vector<TokenId> eos_ids;

  TokenId size() const { return static_cast<TokenId>(texts.size()); }
  bool is_control(TokenId id) const {
    return types[static_cast<std::size_t>(id)] == TokenType::kControl;
  }

  // kInvalidArgument where two tokens have one id, an added token one of another's, or a named one
  // doesn't exist. Moves texts out of `file`.
  static Result<HfVocab> make(TokenizerFile& file, const HfTokenizerConfig& config,
                              std::span<const TokenId> more_eos_ids);
};

}  // namespace dunlin::hf
