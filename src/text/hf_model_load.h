// The model of a tokenizer.json.
#pragma once

#include <memory>

#include "dunlin/status.h"
#include "text/hf_file.h"
#include "text/hf_vocab.h"
#include "text/token_model.h"
#include "text/token_table.h"

namespace dunlin::hf {

struct LoadedModel {
  std::unique_ptr<const TokenTable> table;  // all texts; those that the model may use are findable
  std::unique_ptr<const TokenModel> model;  // uses the table
};

// BPE, Unigram or WordPiece; where an old file has no model.type, by its members. kInvalidArgument
// naming the place.
Result<LoadedModel> load_model(const TokenizerFile& file, const HfVocab& vocab);

}  // namespace dunlin::hf
