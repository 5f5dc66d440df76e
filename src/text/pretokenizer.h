// Cuts text into the pieces that are tokenised each for itself: "pre-tokenisation".
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "dunlin/status.h"
#include "text/byte_alphabet.h"
#include "text/byte_regex.h"

namespace dunlin {

class PreTokenizer {
 public:
  // Each expression cuts the pieces that those before it left: its matches and what stands between
  // them become pieces. Expressions are in Hugging Face's dialect (regex_dialect.h); a piece is a
  // text of its own for ^, $ and lookaround. kInvalidArgument where one can't be used.
  static Result<PreTokenizer> make(std::span<const std::string_view> expressions);

  using Sink = FunctionRef<void(std::string_view piece)>;

  // Gives the pieces of `text`, which must be valid UTF-8, in order; joined, they are the text.
  // Thread-safe. Time is linear for the expressions of pretokenizer_table.h; a search that would
  // cost more than PCRE2's limits is cut (ByteRegex::find), which bounds the others.
  void split(std::string_view text, Sink sink) const;

 private:
  PreTokenizer(ByteAlphabet alphabet, std::vector<ByteRegex> expressions);
  void split_by(std::size_t expression_idx, std::string_view bytes, ByteRegex::Scratch& scratch,
                Sink sink) const;

  ByteAlphabet alphabet_;
  std::vector<ByteRegex> expressions_;
};

}  // namespace dunlin
