// Time grows with the length of the text, whatever the text is. Measured in CPU time of the thread,
// so that a busy machine doesn't matter; the limits are the project's, far above what is needed.
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <iterator>

#include "formats/gguf.h"
#include "text/hf_tokenizer.h"
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
  EXPECT_LE(count, 3 * text.size() + 1);  // U+FFFD for a byte; WordPiece drops spaces
  return cpu_seconds() - start;
}

std::string repeated(std::string_view unit, std::size_t length) {
  std::string out;
  while (out.size() < length) out += unit;
  return out;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// From a GGUF file, or from a tokenizer.json where the name begins with "hf-".
Result<std::unique_ptr<Tokenizer>> load(const std::string& name) {
  const std::string data = DUNLIN_TEST_DATA_DIR;
  if (name.starts_with("hf-")) {
    return make_hf_tokenizer(read_file(data + "/hf_tokenizers/" + name + "/tokenizer.json"), {},
                             {});
  }
  DUNLIN_ASSIGN(file, GgufFile::open(data + "/tokenizers/ggml-vocab-" + name + ".gguf"));
  return make_tokenizer(*file);
}

class SpeedTest : public testing::TestWithParam<const char*> {};

TEST_P(SpeedTest, long_runs_take_under_two_seconds_and_twice_the_length_under_three_times) {
  const auto tokenizer = load(GetParam());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  for (std::string_view unit : {"a", "1", " ", "\n", "A", "ab", "\u4E2D", "a\u0301", "\u3000",
                                "\xFF", "\u0301\u0316", "<think>", "<"}) {
    const std::string text = repeated(unit, kLength), longer = text + text;
    double once = seconds_to_encode(**tokenizer, text);
    double twice = seconds_to_encode(**tokenizer, longer);
    EXPECT_LT(once, 2.0) << unit;
    // Caches shared with other processes make single measurements differ.
    for (int i = 0; i < 5 && twice >= 3 * once; ++i) {
      once = std::min(once, seconds_to_encode(**tokenizer, text));
      twice = std::min(twice, seconds_to_encode(**tokenizer, longer));
    }
    EXPECT_LT(twice, std::max(0.1, 3 * once)) << unit;
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
                         testing::Values("deepseek-llm", "falcon", "gpt-2", "llama-spm", "qwen2",
                                         "hf-bpe-bytelevel", "hf-bpe-gpt2-digits",
                                         "hf-bpe-bytefallback", "hf-unigram", "hf-wordpiece"));

}  // namespace
}  // namespace dunlin
