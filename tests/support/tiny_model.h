// A tiny random model as a GGUF file, for tests that need no real one: a real byte-level BPE
// vocabulary (token id = byte for the first 256, then a few merges, then control tokens), the
// ChatML template, and random weights sized so that greedy text varies. The same options give the
// same file, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/gguf_writer.h"
#include "support/scratch_folder.h"
#include "tensor/dtype.h"

namespace dunlin {

struct TinyModelOptions {
  std::string architecture = "llama";  // "llama", "qwen2" or "gemma3"
  int num_layers = 2;
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 16;
  int hidden_size = 64;
  int ffn_size = 128;
  int vocab_size = 320;  // at least kTinyUsedTokens
  int context_length = 2048;
  // Of all matrices: any weight type. Sizes must be whole blocks of it. The types without a
  // quantiser get random bits with scales of the right size.
  DType dtype = DType::kF32;
  std::uint64_t seed = 1;
  int sliding_window = 0;          // 0: none; gemma3: 32
  int sliding_window_pattern = 2;  // gemma3: every so many layers one sees all
  bool tied = false;               // gemma3: always
  // false: control and unused tokens are as good as never drawn, so texts go on to their limit.
  bool can_end = false;
  bool chat_template = true;
};

// Ids above the 256 bytes and the merges.
inline constexpr int kTinyEndOfText = 272;  // "<|endoftext|>", bos; ends a text
inline constexpr int kTinyImStart = 273;    // "<|im_start|>"
inline constexpr int kTinyImEnd = 274;      // "<|im_end|>", eos
inline constexpr int kTinyUsedTokens = 275;

// The model's vocabulary: strings as GGUF stores them.
std::vector<std::string> tiny_vocabulary(int vocab_size);

// Everything the file has, to which a test may add before it writes.
GgufWriter tiny_model_writer(const TinyModelOptions& options = {});

// A temporary file with such a model; removed with the object. CHECKs that it can be written.
class TinyModelFile {
 public:
  explicit TinyModelFile(const TinyModelOptions& options = {});
  explicit TinyModelFile(const GgufWriter& writer);

  const std::string& path() const { return path_; }

 private:
  ScratchFolder folder_;
  std::string path_;
};

}  // namespace dunlin
