// make_tiny_model PATH [architecture] [dtype] [seed]: writes a tiny random model
// (support/tiny_model.h) for tests that are not C++.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/tiny_model.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: make_tiny_model PATH [llama|qwen2|gemma3] [F32|Q8_0|...] [seed]\n", stderr);
    return 2;
  }
  dunlin::TinyModelOptions options;
  if (argc > 2) options.architecture = argv[2];
  for (int i = 0; argc > 3 && i < dunlin::kNumDTypes; ++i) {
    const auto dtype = static_cast<dunlin::DType>(i);
    if (dunlin::dtype_info(dtype).name == std::string_view(argv[3])) options.dtype = dtype;
  }
  if (dunlin::dtype_info(options.dtype).block_size == 256) {
    options.hidden_size = options.ffn_size = 256;
    options.head_dim = 64;
  }
  if (argc > 4) options.seed = std::strtoull(argv[4], nullptr, 10);
  const dunlin::Outcome written = dunlin::tiny_model_writer(options).write(argv[1]);
  if (written) return 0;
  std::fprintf(stderr, "make_tiny_model: %s\n", written.error().message().c_str());
  return 1;
}
