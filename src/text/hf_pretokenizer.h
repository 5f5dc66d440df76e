// Hugging Face's pre-tokenizers: text into the pieces that the model takes one by one. Types:
// Sequence, Split, ByteLevel, Metaspace, Whitespace, WhitespaceSplit, Punctuation, Digits,
// BertPreTokenizer, CharDelimiterSplit.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "dunlin/status.h"
#include "text/byte_regex.h"
#include "text/json_view.h"

namespace dunlin::hf {

struct Piece {
  std::string_view text;  // valid UTF-8, not empty
  bool at_start;          // begins where the whole text does
};
using PieceSink = FunctionRef<void(Piece)>;

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  // Gives the pieces of `piece`, changed or not, in order. Each lives during the call of `sink`.
  virtual void split(Piece piece, ByteRegex::Scratch& scratch, PieceSink sink) const = 0;
  virtual std::size_t growth() const { return 1; }  // text/growth.h
};

class PreTokenizer {
 public:
  PreTokenizer() = default;  // all is one piece
  // `file` is the root of tokenizer.json. kInvalidArgument naming the place and, for an unknown
  // type, what is supported.
  static Result<PreTokenizer> make(const JsonView& file);

  // Thread-safe. Each step works on what the one before gives.
  void split(Piece text, ByteRegex::Scratch& scratch, PieceSink sink) const {
    split_from(0, text, scratch, sink);
  }

 private:
  void split_from(std::size_t step_idx, Piece piece, ByteRegex::Scratch& scratch,
                  PieceSink sink) const;

  std::vector<std::unique_ptr<const PreTokenizerStep>> steps_;
};

}  // namespace dunlin::hf
