// The pre-tokenizers that GGUF files name in tokenizer.ggml.pre, with what the name says beside the
// expressions.
#pragma once

#include <span>
#include <string_view>

namespace dunlin {

struct PreTokenizerSpec {
  std::string_view name;
  std::span<const std::string_view> expressions;  // for PreTokenizer::make
  // A piece that is a token as a whole is that token, whatever the merges say ("ignore_merges").
  bool whole_pieces_first;
  bool adds_bos;  // where the file doesn't say tokenizer.ggml.add_bos_token
};

// nullptr: no such name.
const PreTokenizerSpec* find_pretokenizer_spec(std::string_view name);

std::span<const PreTokenizerSpec> pretokenizer_specs();

// How GPT-2 cuts text, and with it every ByteLevel that is told nothing else.
extern const std::string_view kGpt2Expression;

}  // namespace dunlin
