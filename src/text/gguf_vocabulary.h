// A Hugging Face tokenizer in the words of GGUF's tokenizer keys, for converted files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "dunlin/types.h"
#include "text/hf_tokenizer_config.h"
#include "text/prepend_scheme.h"

namespace dunlin {

struct GgufVocabulary {
  std::string model;                // tokenizer.ggml.model: "gpt2", "llama", "bert" or "t5"
  std::string pretokenizer;         // tokenizer.ggml.pre
  std::vector<std::string> tokens;  // as stored; ids are indices
  std::vector<std::int32_t> types;  // TokenType of each
  std::vector<std::string> merges;  // "LEFT RIGHT"; empty where there are scores
  std::vector<float> scores;        // [tokens.size()] of SentencePiece's, else empty
  TokenId bos_id = -1;              // -1: none
  TokenId eos_id = -1;
  TokenId eot_id = -1, eom_id = -1;  // two more ends of a text, if names don't tell them
  TokenId unknown_id = -1;
  // BERT's special tokens.
  TokenId cls_id = -1, separator_id = -1, padding_id = -1, mask_id = -1;
  int num_token_types = 0;  // 0: the model has none
  bool adds_bos = false;
  bool adds_eos = false;
  // Around a text, where that is more than BOS and EOS. Other readers than ours see nothing there.
  std::optional<std::vector<TokenId>> prefix_ids, suffix_ids;
  bool adds_space_prefix = true;  // where there are scores
  // Where "llama", for our reader: what adds_space_prefix can't say.
  std::optional<PrependScheme> prepend_scheme;
  bool removes_extra_spaces = false;  // where "t5"
  std::string charsmap;               // where "t5": SentencePiece's, in bytes; empty: none
  std::string chat_template;          // empty: none
};

// Byte-level BPE whose pre-tokenizer GGUF has a name for ("gpt2"), BPE of SentencePiece's kind,
// with bytes as a fallback ("llama"), whose scores are the ranks of merges, BERT's WordPiece
// ("bert"), and Unigram with the steps of SentencePiece's models ("t5"). kUnimplemented where
// GGUF's readers would cut text another way; the message says what is in the way.
Result<GgufVocabulary> to_gguf_vocabulary(std::string_view tokenizer_json,
                                          const HfTokenizerConfig& config,
                                          std::span<const TokenId> more_eos_ids);

}  // namespace dunlin
