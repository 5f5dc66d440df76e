// make_hf_folder GGUF FOLDER [F32|F16|BF16]: writes a GGUF model as a Hugging Face folder
// (support/hf_folder.h), for measurements and tests that are not C++.
#include <cstdio>
#include <string_view>

#include "support/hf_folder.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: make_hf_folder GGUF FOLDER [F32|F16|BF16]\n", stderr);
    return 2;
  }
  const std::string_view type = argc > 3 ? argv[3] : "F32";
  const dunlin::DType dtype = type == "F16"    ? dunlin::DType::kF16
                              : type == "BF16" ? dunlin::DType::kBF16
                                               : dunlin::DType::kF32;
  const dunlin::Outcome written = dunlin::write_hf_folder(argv[1], argv[2], dtype);
  if (written) return 0;
  std::fprintf(stderr, "make_hf_folder: %s\n", written.error().message().c_str());
  return 1;
}
