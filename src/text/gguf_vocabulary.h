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

namespace dunlin {

struct GgufVocabulary {
  std::string model;                // tokenizer.ggml.model
  std::string pretokenizer;         // tokenizer.ggml.pre
  std::vector<std::string> tokens;  // as stored; ids are indices
  std::vector<std::int32_t> types;  // TokenType of each
  std::vector<std::string> merges;  // "LEFT RIGHT"
  TokenId bos_id = -1;              // -1: none
  TokenId eos_id = -1;
  std::optional<bool> adds_bos;
  std::optional<bool> adds_eos;
  std::string chat_template;  // empty: none
};

// Byte-level BPE whose pre-tokenizer GGUF has a name for. kUnimplemented where GGUF's readers would
// cut text another way; the message says what is in the way.
Result<GgufVocabulary> to_gguf_vocabulary(std::string_view tokenizer_json,
                                          const HfTokenizerConfig& config,
                                          std::span<const TokenId> more_eos_ids);

}  // namespace dunlin
