// The vocabulary of BERT's GGUF files ("bert"): words begin with U+2581, what continues one has no
// mark, as opposed to "##" in front of the latter in tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "dunlin/status.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace dunlin {

// BERT's steps with the vocabulary: lower case, no accents, cut at spaces and punctuation,
// WordPiece, [CLS] in front and [SEP] behind (vocab.bos_id and eos_id).
Result<std::unique_ptr<Tokenizer>> make_wordpiece_tokenizer(const Vocab& vocab);

// A token's text in tokenizer.json as GGUF stores it.
std::string gguf_wordpiece(std::string_view text);

}  // namespace dunlin
