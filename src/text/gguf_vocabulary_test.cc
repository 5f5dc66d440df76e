// A tokenizer.json in GGUF's words, read back, against Hugging Face's own ids.
#include "text/gguf_vocabulary.h"

#include <fstream>
#include <iterator>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "text/hf_tokenizer.h"
#include "text/tokenizer_factory.h"
#include "text/vocab.h"

namespace dunlin {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kFolder = DUNLIN_TEST_DATA_DIR "/hf_tokenizers/";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::unique_ptr<Tokenizer> tokenizer_of(const GgufVocabulary& from) {
  Vocab vocab;
  vocab.kind = from.model == "llama" ? TokenizerKind::kSentencePiece
               : from.model == "t5"  ? TokenizerKind::kUnigram
                                     : TokenizerKind::kBytePairs;
  vocab.pretokenizer = from.pretokenizer;
  vocab.tokens.assign(from.tokens.begin(), from.tokens.end());
  for (const std::int32_t type : from.types) vocab.types.push_back(static_cast<TokenType>(type));
  vocab.scores = from.scores;
  vocab.merges.assign(from.merges.begin(), from.merges.end());
  vocab.bos_id = from.bos_id;
  vocab.unknown_id = from.unknown_id;
  vocab.eos_id = from.eos_id;
  vocab.adds_bos = from.adds_bos;
  vocab.adds_eos = from.adds_eos;
  vocab.prefix_ids = from.prefix_ids;
  vocab.suffix_ids = from.suffix_ids;
  vocab.adds_space_prefix = from.adds_space_prefix;
  vocab.prepend_scheme = from.prepend_scheme;
  vocab.removes_extra_spaces = from.removes_extra_spaces;
  vocab.charsmap = from.charsmap;
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
  HfTokenizerConfig config;
  const auto prefix = [&]() -> std::string {
    const auto made = to_gguf_vocabulary(file.dump(), config, {});
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
  config.chat_templates = {{"default", "[INST] {{ messages[0].content }}"}};
  EXPECT_EQ(prefix(), "no prefix") << "what is said stands behind [INST]";
  file["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_EQ(prefix(), "prefix");
  file["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_EQ(prefix(), "no prefix");
  file["pre_tokenizer"] = nullptr;
  EXPECT_NE(prefix().find("byte_fallback without spaces"), std::string::npos) << prefix();
  file["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_NE(prefix().find("Lowercase"), std::string::npos) << prefix();
}

TEST(GgufVocabulary, of_every_prepend_scheme_gives_the_same_ids) {
  json file = json::parse(read_file(kFolder + "hf-bpe-bytefallback/tokenizer.json"));
  file["normalizer"] = nullptr;
  std::set<std::vector<TokenId>> different;
  for (const char* scheme : {"always", "first", "never"}) {
    file["pre_tokenizer"] = {{"type", "Metaspace"},
                             {"replacement", "\u2581"},
                             {"prepend_scheme", scheme},
                             {"split", false}};
    const auto vocabulary = to_gguf_vocabulary(file.dump(), {}, {});
    ASSERT_TRUE(vocabulary) << vocabulary.error().message();
    const auto from_gguf = tokenizer_of(*vocabulary);
    const auto from_json = make_hf_tokenizer(file.dump(), {}, {});
    ASSERT_TRUE(from_gguf && from_json);
    EXPECT_EQ(from_gguf->strips_leading_space(), std::string(scheme) != "never");
    for (const char* text : {"the cat", " the cat", "  the", "\u2581the", "<s>the cat</s>the",
                             "the</s>the", "the</s> cat", "</s>  the"}) {
      EXPECT_EQ(from_gguf->encode(text, true), (*from_json)->encode(text, true))
          << scheme << " " << text;
    }
    different.insert(from_gguf->encode("the</s>the", true));
  }
  EXPECT_EQ(different.size(), 3u);
}

TEST(GgufVocabulary, has_all_tokens_around_a_text) {
  json file = json::parse(read_file(kFolder + "hf-bpe-bytelevel/tokenizer.json"));
  const auto token = [](const char* name) -> json {
    return {{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  file["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {token("<|begin|>"), token("<|end|>"), text, token("<|end|>"), token("<tool>")}},
      {"pair", json::array()},
      {"special_tokens",
       {{"<|begin|>", {{"id", "<|begin|>"}, {"ids", {0}}, {"tokens", {"<|begin|>"}}}},
        {"<|end|>", {{"id", "<|end|>"}, {"ids", {2000}}, {"tokens", {"<|end|>"}}}},
        {"<tool>", {{"id", "<tool>"}, {"ids", {2001}}, {"tokens", {"<tool>"}}}}}}};
  HfTokenizerConfig config;
  config.eos_token = "<|end|>";
  const auto around = [&](bool named_bos) {
    if (named_bos) config.bos_token = "<|begin|>";
    const auto made = to_gguf_vocabulary(file.dump(), config, {});
    EXPECT_TRUE(made) << made.error().message();
    EXPECT_EQ(made->adds_bos, named_bos) << "what other readers put in front";
    EXPECT_TRUE(made->adds_eos);
    const auto tokenizer = tokenizer_of(*made);
    std::vector<TokenId> ids(tokenizer->prefix_ids().begin(), tokenizer->prefix_ids().end());
    ids.insert(ids.end(), tokenizer->suffix_ids().begin(), tokenizer->suffix_ids().end());
    return ids;
  };
  EXPECT_THAT(around(false), testing::ElementsAre(0, 2000, 2000, 2001));
  EXPECT_THAT(around(true), testing::ElementsAre(0, 2000, 2000, 2001));
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

// SentencePiece's map of characters with nothing in it, in base64.
constexpr const char* kEmptyMap = "BAAAAAAAAAAA";

json unigram_file(const json& normalizer, const json& pre_tokenizer) {
  json file = json::parse(read_file(kFolder + "hf-unigram/tokenizer.json"));
  file["normalizer"] = normalizer;
  file["pre_tokenizer"] = pre_tokenizer;
  return file;
}

const json kMark = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
const json kMerge = {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\u2581"}};
const json kPrepend = {{"type", "Prepend"}, {"prepend", "\u2581"}};
const json kStrip = {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}};
const json kMap = {{"type", "Precompiled"}, {"precompiled_charsmap", kEmptyMap}};

json metaspace(const char* scheme) {
  return {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}};
}
json normalizers(const json& steps) { return {{"type", "Sequence"}, {"normalizers", steps}}; }

TEST(GgufVocabulary, of_unigram_gives_the_same_ids) {
  const json files[] = {
      unigram_file(normalizers({kPrepend, kMark}), nullptr),
      unigram_file(kMark, nullptr),
      unigram_file(nullptr, metaspace("never")),
      unigram_file(normalizers({kMap, kStrip, kMerge}), metaspace("always")),
  };
  int num_texts = 0;
  for (const json& file : files) {
    const auto vocabulary = to_gguf_vocabulary(file.dump(), {}, {});
    ASSERT_TRUE(vocabulary) << vocabulary.error().message();
    EXPECT_EQ(vocabulary->model, "t5");
    EXPECT_EQ(vocabulary->eos_id, 1) << "the post-processor's";
    EXPECT_TRUE(vocabulary->adds_eos);
    const auto from_gguf = tokenizer_of(*vocabulary);
    const auto from_json = make_hf_tokenizer(file.dump(), {}, {});
    ASSERT_TRUE(from_gguf && from_json);
    std::ifstream in(kFolder + "hf-unigram/reference.jsonl");
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      const std::string text = json::parse(line).at("text");
      // Strip takes line ends too where no map has made spaces of them.
      if (file["normalizer"].dump().find("Strip") != std::string::npos &&
          text.find_first_of("\t\n\r") != std::string::npos)
        continue;
      EXPECT_EQ(from_gguf->encode(text, true), (*from_json)->encode(text, true))
          << json(text).dump() << file["normalizer"].dump();
      ++num_texts;
    }
  }
  EXPECT_GT(num_texts, 100);
}

TEST(GgufVocabulary, of_unigram_with_other_steps_is_refused_by_their_names) {
  const auto refusal = [](const json& normalizer, const json& pre_tokenizer) -> std::string {
    const auto made = to_gguf_vocabulary(unigram_file(normalizer, pre_tokenizer).dump(), {}, {});
    return made ? "taken" : made.error().message();
  };
  EXPECT_THAT(refusal({{"type", "NFKC"}}, metaspace("always")),
              HasSubstr("NFKC, Metaspace always"));
  // Without a map Strip takes away line ends.
  EXPECT_THAT(refusal(normalizers({kStrip, kMerge}), metaspace("always")),
              HasSubstr("strip, merge"));
  EXPECT_THAT(refusal(normalizers({kMap, kStrip, kMerge}), metaspace("first")), HasSubstr("first"));
  EXPECT_THAT(refusal(normalizers({kMap, kMap}), metaspace("never")), HasSubstr("second map"));
  const json broken = {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}};
  EXPECT_THAT(refusal(broken, metaspace("never")), HasSubstr("base64"));
  json file = unigram_file(nullptr, metaspace("never"));
  file["model"]["vocab"].push_back({"\u2581of\u2581the", -3.0});
  const auto spanning = to_gguf_vocabulary(file.dump(), {}, {});
  ASSERT_FALSE(spanning);
  EXPECT_THAT(spanning.error().message(), HasSubstr("inside of tokens"));
  file["pre_tokenizer"]["split"] = false;
  EXPECT_TRUE(to_gguf_vocabulary(file.dump(), {}, {}));
}

TEST(GgufVocabulary, other_tokens_around_a_text_than_bos_and_eos_are_refused) {
  json file = unigram_file(kMark, nullptr);
  HfTokenizerConfig config;
  config.eos_token = "<unk>";
  const auto made = to_gguf_vocabulary(file.dump(), config, {});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("post_processor"));
}

}  // namespace
}  // namespace dunlin
