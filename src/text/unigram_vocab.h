// The vocabulary of SentencePiece's Unigram models in GGUF ("t5").
#pragma once

#include <memory>
#include <string_view>

#include "dunlin/status.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace dunlin {

// SentencePiece's steps with the vocabulary: its map of characters, spaces as U+2581, of all ways
// to cut the text into tokens the one with the best sum of scores. Where the vocabulary has byte
// tokens they spell what no token has. kInvalidArgument naming the key where the unknown token is
// missing, tokens are there twice or the map is broken.
Result<std::unique_ptr<Tokenizer>> make_unigram_tokenizer(const Vocab& vocab);

// Whether a token has U+2581 behind its first character, so that it may span words.
bool has_inner_space(std::string_view token);

}  // namespace dunlin
