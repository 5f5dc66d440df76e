// What turns a piece of text into tokens: BPE, Unigram or WordPiece.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/types.h"
#include "text/byte_regex.h"
#include "text/merge.h"

namespace dunlin::hf {

// What one thread needs to encode; kept between pieces so that they allocate nothing.
struct EncodeScratch {
  struct PathNode {  // of Unigram: the best way to the byte behind it
    double score;
    std::uint32_t begin;
    TokenId id;
  };

  MergeWorkspace merges;
  ByteRegex::Scratch regex;
  std::vector<PathNode> path;
  std::vector<TokenId> reversed;
  std::string text;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the tokens of `piece`, valid UTF-8, not empty. Never gives a control token, except
  // those that the model has for unknown characters and for bytes. Thread-safe.
  virtual void encode(std::string_view piece, EncodeScratch& scratch,
                      std::vector<TokenId>& ids) const = 0;
};

}  // namespace dunlin::hf
