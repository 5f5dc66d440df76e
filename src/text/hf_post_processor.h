// Hugging Face's post-processors, as far as they add tokens to one text: what stands before it and
// behind it. Types: Sequence, TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel.
#pragma once

#include <vector>

#include "dunlin/status.h"
#include "dunlin/types.h"
#include "text/hf_tokenizer_config.h"
#include "text/hf_vocab.h"
#include "text/json_view.h"

namespace dunlin::hf {

struct AddedAround {
  std::vector<TokenId> prefix_ids;
  std::vector<TokenId> suffix_ids;
};

// `file` is the root of tokenizer.json; ids are below `vocab_size`. kInvalidArgument naming the
// place and, for an unknown type, what is supported.
Result<AddedAround> read_post_processor(const JsonView& file, int vocab_size);

// The same with tokenizer_config.json: its flags win over the post-processor, and stand in for one
// that is not there.
Result<AddedAround> read_added_around(const JsonView& file, const HfVocab& vocab,
                                      const HfTokenizerConfig& config);

}  // namespace dunlin::hf
