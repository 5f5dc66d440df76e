// Tokenizing English text and long runs, and loading vocabularies, one thread. bytes_per_second is
// the text's.
#include <benchmark/benchmark.h>

#include <fstream>
#include <iterator>

#include "formats/gguf.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

constexpr const char* kVocabularies[] = {"qwen2", "llama-bpe", "gpt-2", "deepseek-llm",
                                         "llama-spm"};

std::shared_ptr<const GgufFile> open(std::int64_t idx) {
  const std::string path =
      std::string(DUNLIN_TEST_DATA_DIR "/tokenizers/ggml-vocab-") + kVocabularies[idx] + ".gguf";
  return GgufFile::open(path).value();
}

// The project's own English: licence and documents.
std::string english() {
  std::string out;
  for (const char* name : {"LICENSE", "README.md", "ARCHITECTURE.md", "docs/concepts.md"}) {
    std::ifstream in(std::string(DUNLIN_SOURCE_DIR "/") + name);
    out.append(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

void BM_Encode(benchmark::State& state) {
  const auto tokenizer = make_tokenizer(*open(state.range(0))).value();
  const std::string text = english();
  std::size_t num_tokens = 0;
  for (auto _ : state) num_tokens = tokenizer->encode(text).size();
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size() * state.iterations()));
  state.SetLabel(std::string(kVocabularies[state.range(0)]) + ", " + std::to_string(num_tokens) +
                 " tokens");
}
BENCHMARK(BM_Encode)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

// 200,000 times one character: what pretokenizers leave in one piece.
void BM_EncodeRun(benchmark::State& state) {
  const auto tokenizer = make_tokenizer(*open(state.range(0))).value();
  const std::string text(200'000, static_cast<char>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->encode(text));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size() * state.iterations()));
  state.SetLabel(std::string(kVocabularies[state.range(0)]) + ", '" + text[0] + "'");
}
BENCHMARK(BM_EncodeRun)
    ->ArgsProduct({benchmark::CreateDenseRange(0, 4, 1), {'a', '1', ' '}})
    ->Unit(benchmark::kMillisecond);

void BM_Load(benchmark::State& state) {
  const auto file = open(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(make_tokenizer(*file).value());
  state.SetLabel(kVocabularies[state.range(0)]);
}
BENCHMARK(BM_Load)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dunlin
