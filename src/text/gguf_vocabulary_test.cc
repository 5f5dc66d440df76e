// A tokenizer.json in GGUF's words, read back, against Hugging Face's own ids.
#include "text/gguf_vocabulary.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "text/tokenizer_factory.h"
#include "text/vocab.h"

namespace dunlin {
namespace {

using nlohmann::json;

const std::string kFolder = DUNLIN_TEST_DATA_DIR "/hf_tokenizers/";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::unique_ptr<Tokenizer> tokenizer_of(const GgufVocabulary& from) {
  Vocab vocab;
  vocab.kind = from.model == "llama" ? TokenizerKind::kSentencePiece : TokenizerKind::kBytePairs;
  vocab.pretokenizer = from.pretokenizer;
  vocab.tokens.assign(from.tokens.begin(), from.tokens.end());
  for (const std::int32_t type : from.types) vocab.types.push_back(static_cast<TokenType>(type));
  vocab.scores = from.scores;
  vocab.merges.assign(from.merges.begin(), from.merges.end());
  vocab.bos_id = from.bos_id;
  vocab.unknown_id = from.unknown_id;
  vocab.adds_space_prefix = from.adds_space_prefix;
  auto made = make_tokenizer(vocab);
  EXPECT_TRUE(made) << made.error().message();
  return made ? std::move(*made) : nullptr;
}

TEST(GgufVocabulary, of_sentence_piece_gives_the_same_ids) {
  const std::string folder = kFolder + "hf-bpe-bytefallback";
  const auto vocabulary = to_gguf_vocabulary(read_file(folder + "/tokenizer.json"), {}, {});
  ASSERT_TRUE(vocabulary) << vocabulary.error().message();
  const auto tokenizer = tokenizer_of(*vocabulary);
  ASSERT_TRUE(tokenizer);
  std::ifstream in(folder + "/reference.jsonl");
  std::string line;
  std::getline(in, line);
  int num_lines = 0;
  while (std::getline(in, line)) {
    const json row = json::parse(line);
    const std::string text = row.at("text");
    EXPECT_EQ(tokenizer->encode(text, /*trusted=*/true), row.at("ids").get<std::vector<TokenId>>())
        << row["text"].dump();
    ++num_lines;
  }
  EXPECT_GT(num_lines, 20);
}

TEST(GgufVocabulary, says_what_sentence_piece_does_with_spaces) {
  json file = json::parse(read_file(kFolder + "hf-bpe-bytefallback/tokenizer.json"));
  const auto prefix = [&]() -> std::string {
    const auto made = to_gguf_vocabulary(file.dump(), {}, {});
    if (!made) return made.error().message();
    return made->adds_space_prefix ? "prefix" : "no prefix";
  };
  EXPECT_EQ(prefix(), "prefix");
  // Gemma's: marked spaces, and a cut at spaces that finds none.
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"String", " "}}},
                           {"behavior", "MergedWithPrevious"},
                           {"invert", false}};
  EXPECT_EQ(prefix(), "no prefix");
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "first"}};
  EXPECT_EQ(prefix(), "prefix");
  file["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_EQ(prefix(), "no prefix");
  file["pre_tokenizer"] = nullptr;
  EXPECT_NE(prefix().find("byte_fallback without spaces"), std::string::npos) << prefix();
  file["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_NE(prefix().find("Lowercase"), std::string::npos) << prefix();
}

TEST(GgufVocabulary, has_the_ends_that_their_names_do_not_tell) {
  const std::string file = read_file(kFolder + "hf-bpe-bytefallback/tokenizer.json");
  const auto with_ends = [&](const std::vector<TokenId>& ids) {
    return to_gguf_vocabulary(file, {}, ids);
  };
  const auto three = with_ends({100, 101, 102, 100});
  ASSERT_TRUE(three) << three.error().message();
  EXPECT_EQ(three->eos_id, 100);
  EXPECT_EQ(three->eot_id, 101);
  EXPECT_EQ(three->eom_id, 102);
  const auto one = with_ends({100});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->eot_id, -1);
  const auto four = with_ends({100, 101, 102, 103});
  ASSERT_FALSE(four);
  EXPECT_NE(four.error().message().find("eos_token_id"), std::string::npos);
}

TEST(GgufVocabulary, other_models_are_refused_by_name) {
  const auto made = to_gguf_vocabulary(read_file(kFolder + "hf-unigram/tokenizer.json"), {}, {});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("Unigram"), std::string::npos) << made.error().message();
}

}  // namespace
}  // namespace dunlin
