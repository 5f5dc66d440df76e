// The index of a byte-level BPE vocabulary: BpeTokenizer::make's parts.
#pragma once

#include "dunlin/status.h"
#include "text/token_table.h"
#include "text/vocab.h"

namespace dunlin {

// Texts of all tokens: ordinary ones as the bytes that they stand for, and findable; the others as
// stored. kInvalidArgument where two ordinary tokens are the same.
Result<TokenTable> load_bpe_tokens(const Vocab& vocab);

// kInvalidArgument with the number of a merge that names no token.
Result<MergeTable> load_bpe_merges(const Vocab& vocab, const TokenTable& table);

}  // namespace dunlin
