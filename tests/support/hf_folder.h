// A GGUF model written as the Hugging Face folder that it might have come from: config.json,
// model.safetensors, tokenizer.json and tokenizer_config.json. So tests have folders with real
// weights.
#pragma once

#include <string>

#include "dunlin/status.h"
#include "tensor/dtype.h"

namespace dunlin {

// Of the architectures llama and qwen2 with byte-level BPE. All tensors become `dtype`, F32, F16 or
// BF16; in F32 the weights are exactly those that the file stands for. Makes the folder.
Outcome write_hf_folder(const std::string& gguf_path, const std::string& folder, DType dtype);

}  // namespace dunlin
