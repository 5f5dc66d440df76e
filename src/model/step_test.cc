#include "model/step.h"

#include <gtest/gtest.h>

#include "cpu/process_usage.h"
#include "model/open_model.h"
#include "support/sanitized.h"
#include "support/tiny_model.h"

namespace dunlin {
namespace {

struct Shape {
  const char* architecture;
  DType dtype;
  int max_seqs, max_batch_tokens;
};

// The maps of a model that is ready to run, without its weights, against what was planned.
TEST(StepScratch, TakesWhatItSays) {
  if (support::kIsSanitized) GTEST_SKIP() << "a sanitizer maps memory of its own";
  for (const Shape& shape :
       {Shape{"llama", DType::kF32, 8, 512}, Shape{"qwen2", DType::kQ8_0, 64, 256},
        Shape{"gemma3", DType::kQ4_0, 1, 2048}}) {
    SCOPED_TRACE(shape.architecture);
    TinyModelOptions options;
    options.architecture = shape.architecture;
    options.dtype = shape.dtype;
    options.sliding_window = std::string(shape.architecture) == "gemma3" ? 32 : 0;
    const TinyModelFile file(options);
    LoadOptions load;
    load.num_threads = 2;
    auto opened = open_model(file.path(), load);
    ASSERT_TRUE(opened) << opened.error().message();
    const std::int64_t before = process_usage().virtual_bytes;
    opened->model->reserve(shape.max_batch_tokens, shape.max_seqs, shape.max_seqs);
    const auto mapped = static_cast<double>(process_usage().virtual_bytes - before);
    const bool keeps_float = shape.dtype == DType::kF32;
    const auto planned = static_cast<double>(StepScratch::reserved_bytes(
        opened->config, opened->model->kv_layout(), 2, shape.max_batch_tokens, keeps_float));
    // Small arrays come from the heap, and maps are whole pages.
    EXPECT_LE(mapped, planned + (256 << 10));
    EXPECT_GE(mapped, 0.85 * planned);
  }
}

}  // namespace
}  // namespace dunlin
