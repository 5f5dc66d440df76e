// Text to token ids and back.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "dunlin/types.h"

namespace dunlin {

// A piece of text and where it came from. Special tokens ("<|im_start|>") are matched only in
// trusted pieces (the template's own words), never in what a user typed. Ordinary text between
// matched specials is pre-tokenised as one piece, across the border of trusted and untrusted, so
// that ordinary ids equal the reference's.
struct TextSegment {
  std::string_view text;
  bool trusted = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids of the segments, without any token added in front or behind. Input that is not UTF-8 is
  // tokenised as if each maximal ill-formed piece were one U+FFFD. Thread-safe, near-linear time.
  virtual std::vector<TokenId> encode(std::span<const TextSegment> segments) const = 0;
  std::vector<TokenId> encode(std::string_view text, bool trusted = false) const {
    const TextSegment segment{text, trusted};
    return encode(std::span(&segment, 1));
  }

  // Raw bytes of one token: may be part of a character. Control tokens give "" unless
  // `render_special`.
  virtual std::string token_bytes(TokenId id, bool render_special = false) const = 0;

  // The same of a token that is the first of a text.
  virtual std::string first_token_bytes(TokenId id, bool render_special = false) const {
    std::string bytes = token_bytes(id, render_special);
    if (strips_leading_space() && bytes.starts_with(' ')) bytes.erase(0, 1);
    return bytes;
  }

  // encode(text) gives at least so many ids, from the longest token: told at a gigabyte a second,
  // where encoding takes a thousand times as long. 0 where that is not known, as where an unknown
  // word is one token whatever its length.
  virtual std::size_t fewest_tokens(std::string_view /*text*/) const { return 0; }

  virtual int vocab_size() const = 0;
  virtual bool is_control(TokenId id) const = 0;

  // Tokens that a prompt gets in front and behind, as the model's metadata says (BOS, or none).
  virtual std::span<const TokenId> prefix_ids() const = 0;
  virtual std::span<const TokenId> suffix_ids() const = 0;
  // End-of-generation set: eos, eot and what else the metadata names.
  virtual std::span<const TokenId> eos_ids() const = 0;
  virtual TokenId bos_id() const = 0;  // -1: none
  virtual TokenId eos_id() const = 0;  // -1: none

  // SentencePiece models drop the space that stands in front of the first word of a text.
  virtual bool strips_leading_space() const = 0;
  // Some decoders drop the space that stands behind the last word.
  virtual bool strips_trailing_space() const { return false; }
};

}  // namespace dunlin
