// Ids against references: eight vocabularies (llama.cpp's ids), the project's own cases (Hugging
// Face's) and the prompts of the three real models (Hugging Face's).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/gguf.h"
#include "support/real_models.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

using nlohmann::json;

std::unique_ptr<Tokenizer> load(const std::string& path) {
  auto file = GgufFile::open(path);
  if (!file) {
    ADD_FAILURE() << file.error().message();
    return nullptr;
  }
  auto tokenizer = make_tokenizer(**file);
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message();
    return nullptr;
  }
  return std::move(*tokenizer);
}

std::string text_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string out;
  for (TokenId id : ids) out += tokenizer.token_bytes(id, /*render_special=*/true);
  if (tokenizer.strips_leading_space() && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

// Checks each line behind the first, {"text", "ids"}; returns how many there were.
int check_lines(const Tokenizer& tokenizer, const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  int count = 0;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const json row = json::parse(line);
    const std::string text = row.at("text");
    const auto expected = row.at("ids").get<std::vector<TokenId>>();
    const std::vector<TokenId> ids = tokenizer.encode(text);
    EXPECT_EQ(ids, expected) << path << ": " << row.at("text").dump();
    // The marker of spaces itself is the one text that SentencePiece can't give back.
    EXPECT_EQ(text_of(tokenizer, ids), text) << path;
    EXPECT_GE(ids.size(), tokenizer.fewest_tokens(text)) << path;
    ++count;
  }
  return count;
}

class VocabularyTest : public testing::TestWithParam<const char*> {};

TEST_P(VocabularyTest, ids_equal_the_reference_and_decode_to_the_text) {
  const std::string folder = DUNLIN_TEST_DATA_DIR "/tokenizers/";
  const auto tokenizer = load(folder + "ggml-vocab-" + GetParam() + ".gguf");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(check_lines(*tokenizer, folder + GetParam() + ".jsonl"), 64);
}

INSTANTIATE_TEST_SUITE_P(All, VocabularyTest,
                         testing::Values("deepseek-llm", "falcon", "gpt-2", "llama-bpe",
                                         "llama-spm", "phi-3", "qwen2", "starcoder"));

TEST(TokenizerGoldenTest, own_cases_hold_on_a_qwen2_vocabulary) {
  const auto tokenizer = load(DUNLIN_TEST_DATA_DIR "/tokenizers/ggml-vocab-qwen2.gguf");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(check_lines(*tokenizer, DUNLIN_TESTS_DIR "/cases/tok/own_qwen2.jsonl"), 14);
}

TEST(TokenizerGoldenTest, own_cases_hold_on_smollm2) {
  DUNLIN_REAL_MODEL_OR_SKIP(path, support::kSmolLm2File);
  const auto tokenizer = load(path);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(check_lines(*tokenizer, DUNLIN_TESTS_DIR "/cases/tok/own_smollm2.jsonl"), 14);
}

struct RealModel {
  const char* file;
  const char* golden;
};
std::ostream& operator<<(std::ostream& out, const RealModel& model) { return out << model.golden; }

class RealModelTest : public testing::TestWithParam<RealModel> {};

TEST_P(RealModelTest, prompts_have_the_ids_of_the_goldens) {
  DUNLIN_REAL_MODEL_OR_SKIP(path, GetParam().file);
  const auto tokenizer = load(path);
  ASSERT_TRUE(tokenizer);
  std::ifstream in(std::string(DUNLIN_TESTS_DIR "/golden/real/") + GetParam().golden);
  ASSERT_TRUE(in);
  const json golden = json::parse(in);
  int count = 0;
  for (const json& prompt : golden) {
    std::vector<TokenId> ids(tokenizer->prefix_ids().begin(), tokenizer->prefix_ids().end());
    for (TokenId id : tokenizer->encode(prompt.at("text").get<std::string>(), /*trusted=*/true)) {
      ids.push_back(id);
    }
    EXPECT_EQ(ids, prompt.at("ids").get<std::vector<TokenId>>()) << prompt.at("text").dump();
    EXPECT_EQ(text_of(*tokenizer, prompt.at("greedy_ids").get<std::vector<TokenId>>()),
              prompt.at("greedy_text").get<std::string>());
    ++count;
  }
  EXPECT_EQ(count, 5);
}

// The cases t5 and t9 of tests/cases/req: texts that come back byte for byte, and go on doing so.
TEST(TokenizerGoldenTest, texts_survive_tokens_and_back_again) {
  DUNLIN_REAL_MODEL_OR_SKIP(gemma_path, support::kGemma3File);
  const auto gemma = load(gemma_path);
  const auto llama = load(DUNLIN_TEST_DATA_DIR "/tokenizers/ggml-vocab-llama-spm.gguf");
  const auto qwen = load(DUNLIN_TEST_DATA_DIR "/tokenizers/ggml-vocab-qwen2.gguf");
  ASSERT_TRUE(gemma && llama && qwen);
  int count = 0;
  for (const char* name : {"t5_byte_fallback", "t9_retokenize"}) {
    std::ifstream in(std::string(DUNLIN_TESTS_DIR "/cases/req/") + name + ".json");
    const json bodies = json::parse(in)["bodies"];
    for (const json& body : bodies) {
      const std::string text = body["content"];
      for (const Tokenizer* tokenizer : {gemma.get(), llama.get(), qwen.get()}) {
        const std::vector<TokenId> ids = tokenizer->encode(text);
        std::string again = text;
        for (int i = 0; i < 5; ++i) {
          const std::vector<TokenId> got = tokenizer->encode(again);
          EXPECT_EQ(got, ids) << body.dump();
          again = text_of(*tokenizer, got);
          EXPECT_EQ(again, text) << body.dump();
        }
      }
      ++count;
    }
  }
  EXPECT_EQ(count, 7);
}

INSTANTIATE_TEST_SUITE_P(All, RealModelTest,
                         testing::Values(RealModel{support::kSmolLm2File, "smollm2.json"},
                                         RealModel{support::kQwenCoderFile, "qwen25-coder.json"},
                                         RealModel{support::kGemma3File, "gemma3.json"}));

}  // namespace
}  // namespace dunlin
