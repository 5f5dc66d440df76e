// Streaming ids to UTF-8: gives out whole characters only; the bytes of an unfinished one wait (3
// at most). Invalid bytes become U+FFFD once it is certain that they are invalid, one for each
// maximal subpart (base/utf8.h), so that the whole text equals a lossy decoding of all bytes at
// once. Control tokens between the bytes of a character leave no trace. One object a sequence.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace dunlin {

class Detokenizer {
 public:
  // `at_text_start`: the first token gives what it does at the start of a text: the first word's
  // space is dropped where the tokenizer adds one there.
  explicit Detokenizer(const Tokenizer& tokenizer, bool at_text_start = true,
                       bool render_special = false);

  // Text that became certain with this token; may be empty.
  std::string push(TokenId id);
  // What was waiting, as U+FFFD for each broken part. The object is at its start again.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool has_start_;
  bool render_special_;
  bool at_start_;             // no token has had text yet
  std::string pending_;       // the bytes of an unfinished character
  bool space_waits_ = false;  // one that may turn out to be the last character
};

}  // namespace dunlin
