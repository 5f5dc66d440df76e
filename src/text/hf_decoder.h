// Hugging Face's decoders, token by token, so that text can be given out while it is made. Types:
// Sequence, ByteLevel, Metaspace, ByteFallback, Fuse, Strip, Replace, WordPiece, BPEDecoder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "text/json_view.h"

namespace dunlin::hf {

class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  // Changes a token's text; `is_first`: of the tokens of a text.
  virtual void apply(std::string& token, bool is_first) const = 0;
  virtual std::size_t growth() const { return 1; }  // text/growth.h
};

class Decoder {
 public:
  // `file` is the root of tokenizer.json. Without a decoder a space stands between tokens.
  // kInvalidArgument naming the place, for an unknown type, and for what needs the text as a whole.
  static Result<Decoder> make(const JsonView& file);

  // What the token of this text gives: bytes that joined are the decoded text.
  std::string decode(std::string_view token, bool is_first) const;

  // A space in front of the whole text is dropped.
  bool strips_leading_space() const { return strips_leading_space_; }
  // A space behind the whole text is dropped.
  bool strips_trailing_space() const { return strips_trailing_space_; }

 private:
  friend class DecoderReader;
  std::vector<std::unique_ptr<const DecoderStep>> steps_;
  bool strips_leading_space_ = false;
  bool strips_trailing_space_ = false;
};

}  // namespace dunlin::hf
