// The tokenizer of a model file.
#pragma once

#include <memory>

#include "dunlin/status.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace dunlin {

class GgufFile;

// kNotFound or kInvalidArgument naming the key that is missing or wrong; kUnimplemented where the
// file names a tokenizer or pre-tokenizer that is not there yet. The tokenizer keeps nothing of
// the file. Thread-safe.
Result<std::unique_ptr<Tokenizer>> make_tokenizer(const GgufFile& file);

// The same from a vocabulary in memory.
Result<std::unique_ptr<Tokenizer>> make_tokenizer(const Vocab& vocab);

}  // namespace dunlin
