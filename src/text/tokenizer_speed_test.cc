// Time grows with the length of the text, whatever the text is. Measured in CPU time of the thread,
// so that a busy machine doesn't matter; the limits are the project's, far above what is needed.
#include <gtest/gtest.h>

#include <ctime>

#include "formats/gguf.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

constexpr std::size_t kLength = 200'000;

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  const double start = cpu_seconds();
  const std::size_t count = tokenizer.encode(text).size();
  EXPECT_GT(count, 0u);
  return cpu_seconds() - start;
}

std::string repeated(std::string_view unit, std::size_t length) {
  std::string out;
  while (out.size() < length) out += unit;
  return out;
}

class SpeedTest : public testing::TestWithParam<const char*> {};

TEST_P(SpeedTest, long_runs_take_under_two_seconds_and_twice_the_length_under_three_times) {
  const auto file = GgufFile::open(std::string(DUNLIN_TEST_DATA_DIR "/tokenizers/ggml-vocab-") +
                                   GetParam() + ".gguf");
  ASSERT_TRUE(file) << file.error().message();
  const auto tokenizer = make_tokenizer(**file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  for (std::string_view unit :
       {"a", "1", " ", "\n", "A", "ab", "\u4E2D", "a\u0301", "\u3000", "\xFF"}) {
    const std::string text = repeated(unit, kLength), longer = text + text;
    double once = seconds_to_encode(**tokenizer, text);
    double twice = seconds_to_encode(**tokenizer, longer);
    EXPECT_LT(once, 2.0) << unit;
    // Caches shared with other processes make single measurements differ.
    for (int i = 0; i < 5 && twice >= 3 * once; ++i) {
      once = std::min(once, seconds_to_encode(**tokenizer, text));
      twice = std::min(twice, seconds_to_encode(**tokenizer, longer));
    }
    EXPECT_LT(twice, std::max(0.02, 3 * once)) << unit;
  }
  // Runs that end otherwise than they began.
  for (std::string_view end : {"1", "a", "\n", "\u4E2D"}) {
    EXPECT_LT(seconds_to_encode(**tokenizer, repeated(" ", kLength) + std::string(end)), 2.0)
        << end;
    EXPECT_LT(seconds_to_encode(**tokenizer, repeated("A", kLength) + std::string(end)), 2.0)
        << end;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpeedTest,
                         testing::Values("deepseek-llm", "falcon", "gpt-2", "llama-spm", "qwen2"));

}  // namespace
}  // namespace dunlin
