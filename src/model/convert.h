// A checkpoint written as a GGUF file with the names, keys and row orders that llama.cpp reads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "dunlin/status.h"
#include "formats/gguf_writer.h"
#include "model/hf_checkpoint.h"

namespace dunlin {

struct ConvertOptions {
  // Of weight matrices: a type that can_quantize(). nullopt: as stored. Rows that are no whole
  // blocks become F16. Vectors and the routers of experts are always F32.
  std::optional<DType> type;
  // Adds the tokenizer's keys; empty: a file without a vocabulary.
  std::function<void(GgufWriter& writer)> add_vocabulary;
  // Called after each tensor with the bytes read so far and in all.
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress;
};

// Checks the checkpoint as for use, then writes `path` (kAlreadyExists where it is there).
Outcome convert_to_gguf(const HfCheckpoint& checkpoint, const std::string& path,
                        const ConvertOptions& options);

}  // namespace dunlin
