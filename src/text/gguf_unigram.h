// What the normalizer and the pre-tokenizer of a Unigram tokenizer.json do, in GGUF's words.
#pragma once

#include <string>

#include "dunlin/status.h"
#include "text/json_view.h"

namespace dunlin {

struct UnigramSteps {
  std::string charsmap;  // SentencePiece's map of characters, in bytes; empty: none
  bool adds_space_prefix = false;
  bool removes_extra_spaces = false;
};

// `root` is tokenizer.json's; `has_inner_spaces`: some token has U+2581 behind its first character.
// Known are the chains of steps that SentencePiece's models are published with. kUnimplemented
// naming the chain for any other.
Result<UnigramSteps> read_unigram_steps(const hf::JsonView& root, bool has_inner_spaces);

}  // namespace dunlin
