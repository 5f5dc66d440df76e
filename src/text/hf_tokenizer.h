// The tokenizer of a Hugging Face folder, from tokenizer.json.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "dunlin/status.h"
#include "text/hf_tokenizer_config.h"
#include "text/tokenizer.h"

namespace dunlin {

// `tokenizer_json` is the file's text, at most 256 MiB; `more_eos_ids` are those of
// generation_config.json and config.json, and may be empty. Nothing given is kept.
//
// Models: BPE, Unigram, WordPiece. Normalizers, pre-tokenizers, post-processors and decoders as
// hf_normalizer.h, hf_pretokenizer.h, hf_post_processor.h and hf_decoder.h list them; any other is
// refused by name. Ids equal those of Hugging Face's tokenizers for trusted text; in other text
// special tokens ("special": true) are spelled out and no merge makes one.
//
// kInvalidArgument: "tokenizer.json: PLACE: what is wrong and what is supported".
Result<std::unique_ptr<Tokenizer>> make_hf_tokenizer(std::string_view tokenizer_json,
                                                     const HfTokenizerConfig& config,
                                                     std::span<const TokenId> more_eos_ids);

}  // namespace dunlin
