// Work grows with the length of the text, whatever the text is. Told from CPU time of the thread,
// by a ratio that no busy machine reaches; how fast it is, text_bench says.
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

class GrowthTest : public testing::TestWithParam<const char*> {};

// Work that is quadratic would take 256 times as long; the rest of the margin is for caches and
// sanitizers.
TEST_P(GrowthTest, sixteen_times_the_length_takes_well_under_256_times_as_long) {
  const auto tokenizer = load(GetParam());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  const auto expect_linear = [&](std::string_view unit, std::string_view end) {
    const std::string text = repeated(unit, kLength / 16) + std::string(end);
    const std::string longer = repeated(unit, kLength) + std::string(end);
    double once = seconds_to_encode(**tokenizer, text);
    double sixteenfold = seconds_to_encode(**tokenizer, longer);
    const auto grows_fast = [&] { return sixteenfold > std::max(0.1, 64 * once); };
    for (int i = 0; i < 5 && grows_fast(); ++i) {
      once = std::min(once, seconds_to_encode(**tokenizer, text));
      sixteenfold = std::min(sixteenfold, seconds_to_encode(**tokenizer, longer));
    }
    EXPECT_FALSE(grows_fast()) << unit << end << ": " << once << " s and " << sixteenfold << " s";
  };
  for (std::string_view unit : {"a", "1", " ", "\n", "A", "ab", "\u4E2D", "a\u0301", "\u3000",
                                "\xFF", "\u0301\u0316", "<think>", "<"}) {
    expect_linear(unit, "");
  }
  // Runs that end otherwise than they began.
  for (std::string_view end : {"1", "a", "\n", "\u4E2D"}) {
    expect_linear(" ", end);
    expect_linear("A", end);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GrowthTest,
                         testing::Values("deepseek-llm", "falcon", "gpt-2", "llama-spm", "qwen2",
                                         "hf-bpe-bytelevel", "hf-bpe-gpt2-digits",
                                         "hf-bpe-bytefallback", "hf-unigram", "hf-wordpiece"));

}  // namespace
}  // namespace dunlin
