// Streaming ids to UTF-8: gives out whole characters only; the bytes of an unfinished one wait.
// Invalid bytes become U+FFFD once it is certain that they are invalid. One object a sequence.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace dunlin {

class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool at_text_start = true,
                       bool render_special = false);

  // Text that became certain with this token; may be empty.
  std::string push(TokenId id);
  // What was waiting, as U+FFFD for each broken part. The object is at its start again.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool strip_space_;
  bool render_special_;
  std::string pending_;
};

}  // namespace dunlin
