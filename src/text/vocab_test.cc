// Vocabularies read from GGUF files, sound and not.
#include "text/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "formats/gguf.h"
#include "formats/gguf_writer.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A SentencePiece vocabulary of five tokens, to be spoilt.
struct Parts {
  std::string model = "llama";
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\u2581", "a"};
  std::vector<std::int32_t> types = {2, 3, 3, 1, 1};
  std::vector<float> scores = {0, 0, 0, -1, -2};
  std::vector<std::string> merges;
  std::vector<std::pair<std::string, std::uint32_t>> ids;
  std::vector<std::pair<std::string, bool>> switches;
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> id_lists;
  std::string pre, charsmap, prepend_scheme;
};

class VocabFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) /
        ("vocab_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<const GgufFile> write(const Parts& parts) {
    GgufWriter writer;
    const std::string key = "tokenizer.ggml.";
    if (!parts.model.empty()) writer.set_string(key + "model", parts.model);
    if (!parts.pre.empty()) writer.set_string(key + "pre", parts.pre);
    if (!parts.tokens.empty()) writer.set_strings(key + "tokens", parts.tokens);
    if (!parts.types.empty()) writer.set_i32s(key + "token_type", parts.types);
    if (!parts.scores.empty()) writer.set_f32s(key + "scores", parts.scores);
    if (!parts.merges.empty()) writer.set_strings(key + "merges", parts.merges);
    if (!parts.charsmap.empty()) writer.set_u8s(key + "precompiled_charsmap", parts.charsmap);
    for (const auto& [name, id] : parts.ids) writer.set_u32(key + name, id);
    for (const auto& [name, value] : parts.switches) writer.set_bool(key + name, value);
    for (const auto& [name, ids] : parts.id_lists) writer.set_i32s(key + name, ids);
    if (!parts.prepend_scheme.empty())
      writer.set_string(key + "prepend_scheme", parts.prepend_scheme);
    const std::string path = (folder_ / (std::to_string(count_++) + ".gguf")).string();
    const auto written = writer.write(path);
    EXPECT_TRUE(written) << written.error().message();
    auto file = GgufFile::open(path);
    EXPECT_TRUE(file) << file.error().message();
    return *file;
  }

  std::string refusal(const Parts& parts) {
    const auto made = make_tokenizer(*write(parts));
    if (made) return "";
    EXPECT_THAT(made.error().message(), testing::StartsWith(folder_.string()));
    return made.error().message();
  }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

TEST_F(VocabFileTest, what_a_file_leaves_unsaid_is_sentencepieces_habit) {
  const auto file = write(Parts());
  const auto vocab = read_vocab(*file);
  ASSERT_TRUE(vocab);
  EXPECT_EQ(vocab->bos_id, 1);
  EXPECT_EQ(vocab->eos_id, 2);
  EXPECT_EQ(vocab->unknown_id, 0);
  EXPECT_TRUE(vocab->adds_space_prefix);
  const auto tokenizer = make_tokenizer(*file);
  ASSERT_TRUE(tokenizer);
  EXPECT_THAT((*tokenizer)->prefix_ids(), ElementsAre(1));
  EXPECT_THAT((*tokenizer)->suffix_ids(), ElementsAre());
  EXPECT_THAT((*tokenizer)->encode("a"), ElementsAre(3, 4));
}

TEST_F(VocabFileTest, keys_say_otherwise) {
  Parts parts;
  parts.ids = {{"bos_token_id", 3},
               {"eos_token_id", 4},
               {"eot_token_id", 2},
               {"eom_token_id", 1},
               {"unknown_token_id", 0xFFFFFFFF}};
  parts.switches = {{"add_bos_token", false}, {"add_eos_token", true}, {"add_space_prefix", false}};
  const auto file = write(parts);
  const auto vocab = read_vocab(*file);
  ASSERT_TRUE(vocab);
  EXPECT_EQ(vocab->unknown_id, -1);
  EXPECT_THAT(vocab->eos_ids, ElementsAre(4, 2, 1));
  const auto tokenizer = make_tokenizer(*file);
  ASSERT_TRUE(tokenizer);
  EXPECT_THAT((*tokenizer)->prefix_ids(), ElementsAre());
  EXPECT_THAT((*tokenizer)->suffix_ids(), ElementsAre(4));
  EXPECT_THAT((*tokenizer)->encode("a a"), ElementsAre(4, 3, 4));
}

TEST_F(VocabFileTest, own_keys_say_more_than_those_that_all_readers_know) {
  Parts parts;
  parts.id_lists = {{"prefix_token_ids", {1, 0}}, {"suffix_token_ids", {}}};
  parts.switches = {{"add_bos_token", true}, {"add_eos_token", true}};
  parts.prepend_scheme = "first";
  const auto file = write(parts);
  const auto tokenizer = make_tokenizer(*file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_THAT((*tokenizer)->prefix_ids(), ElementsAre(1, 0));
  EXPECT_THAT((*tokenizer)->suffix_ids(), ElementsAre());
  EXPECT_THAT((*tokenizer)->encode("a</s>a", true), ElementsAre(3, 4, 2, 4));
  EXPECT_THAT((*tokenizer)->encode(" a", true), ElementsAre(3, 4));
}

TEST_F(VocabFileTest, without_types_the_ids_that_keys_name_are_control_tokens) {
  Parts parts;
  parts.types.clear();
  parts.ids = {{"eot_token_id", 4}};
  const auto tokenizer = make_tokenizer(*write(parts));
  ASSERT_TRUE(tokenizer);
  for (TokenId id : {0, 1, 2, 4}) EXPECT_TRUE((*tokenizer)->is_control(id)) << id;
  EXPECT_FALSE((*tokenizer)->is_control(3));
}

TEST_F(VocabFileTest, refusals_name_the_key) {
  const auto with = [](auto change) {
    Parts parts;
    change(parts);
    return parts;
  };
  const auto refused = [&](auto change) { return refusal(with(change)); };
  EXPECT_THAT(refused([](Parts& p) { p.model.clear(); }), HasSubstr("tokenizer.ggml.model"));
  EXPECT_THAT(refused([](Parts& p) { p.model = "rwkv"; }),
              HasSubstr("tokenizer.ggml.model is 'rwkv'"));
  EXPECT_THAT(refused([](Parts& p) { p.tokens.clear(); }), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(refused([](Parts& p) { p.types.pop_back(); }),
              HasSubstr("tokenizer.ggml.token_type has 4 entries for 5 tokens"));
  EXPECT_THAT(refused([](Parts& p) { p.types[2] = 7; }),
              HasSubstr("tokenizer.ggml.token_type gives token 2 the type 7"));
  EXPECT_THAT(refused([](Parts& p) { p.types[2] = -1; }), HasSubstr("tokenizer.ggml.token_type"));
  EXPECT_THAT(refused([](Parts& p) { p.scores.clear(); }), HasSubstr("tokenizer.ggml.scores"));
  EXPECT_THAT(refused([](Parts& p) { p.scores.pop_back(); }),
              HasSubstr("tokenizer.ggml.scores has 4 entries for 5 tokens"));
  EXPECT_THAT(refused([](Parts& p) { p.scores[1] = std::numeric_limits<float>::quiet_NaN(); }),
              HasSubstr("tokenizer.ggml.scores gives token 1"));
  EXPECT_THAT(refused([](Parts& p) { p.tokens[4] = p.tokens[3]; }),
              HasSubstr("tokenizer.ggml.tokens: tokens 3 and 4"));
  EXPECT_THAT(refused([](Parts& p) { p.types[4] = 6; }),
              HasSubstr("tokenizer.ggml.tokens: token 4 is of type byte"));
  for (const char* key :
       {"bos_token_id", "eos_token_id", "eot_token_id", "eom_token_id", "unknown_token_id"}) {
    EXPECT_THAT(refused([&](Parts& p) { p.ids = {{key, 5}}; }),
                HasSubstr(std::string("tokenizer.ggml.") + key + " is 5"));
  }
  for (const std::int32_t id : {-1, 5}) {
    EXPECT_THAT(refused([&](Parts& p) { p.id_lists = {{"prefix_token_ids", {1, id}}}; }),
                HasSubstr("tokenizer.ggml.prefix_token_ids has " + std::to_string(id)));
  }
  EXPECT_THAT(refused([](Parts& p) {
                p.id_lists = {{"suffix_token_ids", std::vector<std::int32_t>(65, 1)}};
              }),
              HasSubstr("tokenizer.ggml.suffix_token_ids has more than 64"));
  EXPECT_THAT(refused([](Parts& p) { p.prepend_scheme = "last"; }),
              HasSubstr("tokenizer.ggml.prepend_scheme is 'last'"));
  EXPECT_THAT(refused([](Parts& p) { p.model = "gpt2"; }), HasSubstr("tokenizer.ggml.merges"));
  EXPECT_THAT(refused([](Parts& p) {
                p.model = "gpt2";
                p.pre = "never-heard-of";
                p.merges = {"a a"};
              }),
              HasSubstr("tokenizer.ggml.pre is 'never-heard-of'"));
  EXPECT_THAT(refused([](Parts& p) {
                p.model = "gpt2";
                p.merges = {"a zz"};
              }),
              HasSubstr("tokenizer.ggml.merges: entry 0 ('a zz') names 'zz'"));
}

TEST_F(VocabFileTest, UnigramHasKeysOfItsOwn) {
  Parts parts;
  parts.model = "t5";
  parts.tokens = {"<pad>", "</s>", "<unk>", "\u2581", "a"};
  parts.types = {3, 3, 2, 1, 1};
  const auto plain = read_vocab(*write(parts));
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(plain->kind, TokenizerKind::kUnigram);
  EXPECT_EQ(plain->eos_id, 1);
  EXPECT_EQ(plain->unknown_id, 2);
  EXPECT_EQ(plain->bos_id, -1);
  EXPECT_TRUE(plain->adds_eos);
  EXPECT_FALSE(plain->adds_space_prefix);
  EXPECT_FALSE(plain->removes_extra_spaces);
  parts.switches = {{"add_space_prefix", true}, {"remove_extra_whitespaces", true}};
  parts.charsmap = std::string("\x04\0\0\0\xFF", 5);
  const auto file = write(parts);
  const auto full = read_vocab(*file);
  ASSERT_TRUE(full) << full.error().message();
  EXPECT_TRUE(full->adds_space_prefix);
  EXPECT_TRUE(full->removes_extra_spaces);
  EXPECT_EQ(full->charsmap, parts.charsmap);
  parts.charsmap.clear();
  parts.scores.clear();
  EXPECT_THAT(read_vocab(*write(parts)).error().message(), HasSubstr("scores"));
}

}  // namespace
}  // namespace dunlin
