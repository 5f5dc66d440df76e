// A checkpoint written as a GGUF file with the names, keys and row orders that llama.cpp reads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "dunlin/status.h"
#include "formats/gguf_writer.h"
#include "model/hf_checkpoint.h"
#include "model/quant_recipe.h"

namespace dunlin {

struct ConvertOptions {
  // nullopt: matrices as stored; vectors, routers and learned positions (and token types) are F32
  // either way.
  std::optional<QuantRecipe> recipe;
  int num_threads = 0;  // 0: default_num_threads()
  // Adds the tokenizer's keys; empty: a file without a vocabulary.
  std::function<void(GgufWriter& writer)> add_vocabulary;
  // Called with the bytes read so far and in all, some times a tensor; false stops (kCancelled).
  std::function<bool(std::int64_t done_bytes, std::int64_t total_bytes)> progress;
};

// Checks the checkpoint as for use, then writes `path` (kAlreadyExists where it is there). Refuses,
// naming tensor and row, a value that is not a finite number, and one that the wanted type can't
// hold. No file is left behind by what fails or is stopped.
Outcome convert_to_gguf(const HfCheckpoint& checkpoint, const std::string& path,
                        const ConvertOptions& options);

}  // namespace dunlin
