// What `dunlin inspect` finds in a model file or folder, after checking all of it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dunlin/status.h"
#include "model/quant_recipe.h"

namespace dunlin {

inline constexpr std::array<int, 4> kMemoryBatches = {1, 8, 32, 128};

// What serving takes in all (engine/memory_plan.h): kMemoryBatches sequences of `context` tokens.
struct MemoryRow {
  int context = 0;
  std::array<std::int64_t, kMemoryBatches.size()> bytes{};
};

enum class FileFormat { kGguf, kHuggingFace };

struct FileFacts {
  FileFormat format = FileFormat::kGguf;
  std::string path, name, architecture, tokenizer;
  std::uint64_t file_bytes = 0;
  int num_parts = 1;
  std::uint32_t version = 0;  // of GGUF
  std::size_t num_keys = 0, num_tensors = 0;
  bool chat_template = false;
  bool vocabulary_only = false;  // the fields below are zero then
  std::int64_t num_params = 0, weight_bytes = 0;
  std::vector<std::pair<std::string, std::int64_t>> bytes_by_dtype;  // the largest first
  int num_layers = 0, hidden_size = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0;
  int window = 0, num_window_layers = 0;
  int vocab_size = 0, context_length = 0;
  bool is_encoder = false;
  std::string pooling;  // of embeddings
  std::int64_t kv_bytes_per_token = 0;
  std::vector<MemoryRow> memory;
};

// Structure, metadata, vocabulary, chat template, every tensor's name, type and shape, and that
// every weight is a finite number, on all cores. The error is one line that names the file and
// what is wrong in it. progress: bytes of weights read so far, or null. Sizes and types of weights
// are those that they have when the model is opened with `recipe`.
Result<FileFacts> check_file(
    const std::string& path, const std::optional<QuantRecipe>& recipe,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress);

}  // namespace dunlin
