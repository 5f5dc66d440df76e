// Small tokenizer.json files: flags, provenance, the configuration beside it, and refusals.
#include "text/hf_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/detokenizer.h"

namespace dunlin {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;

json added(int id, const char* content, bool special, bool normalized = false) {
  return {{"id", id}, {"content", content}, {"special", special}, {"normalized", normalized}};
}

// WordPiece: words a b ab, the continuation ##b, [UNK]; spaces cut.
json small_file() {
  return {{"added_tokens", json::array({added(0, "[UNK]", true)})},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"vocab", {{"[UNK]", 0}, {"a", 1}, {"b", 2}, {"##b", 3}, {"abb", 4}}}}}};
}

std::unique_ptr<Tokenizer> make(const json& file, const HfTokenizerConfig& config = {},
                                const Ids& more_eos_ids = {}) {
  auto made = make_hf_tokenizer(file.dump(), config, more_eos_ids);
  EXPECT_TRUE(made) << made.error().message();
  return made ? std::move(*made) : nullptr;
}

std::string refusal(const std::string& text, const HfTokenizerConfig& config = {}) {
  const auto made = make_hf_tokenizer(text, config, {});
  return made ? "accepted" : made.error().message();
}
std::string refusal(const json& file) { return refusal(file.dump()); }

HfTokenizerConfig config_of(const json& config) {
  auto read = HfTokenizerConfig::read(config.dump(), std::nullopt);
  EXPECT_TRUE(read) << read.error().message();
  return read ? std::move(*read) : HfTokenizerConfig();
}

std::string decode(const Tokenizer& tokenizer, const Ids& ids) {
  Detokenizer detokenizer(tokenizer);
  std::string out;
  for (TokenId id : ids) out += detokenizer.push(id);
  return out + detokenizer.finish();
}

TEST(HfTokenizerTest, special_tokens_are_found_in_trusted_text_only) {
  json file = small_file();
  file["added_tokens"].push_back(added(5, "<x>", true));
  file["added_tokens"].push_back(added(6, "<y>", false));
  const auto tokenizer = make(file);
  EXPECT_EQ(tokenizer->encode("a<x>b", true), (Ids{1, 5, 2}));
  EXPECT_EQ(tokenizer->encode("a<x>b", false), (Ids{0}));
  EXPECT_EQ(tokenizer->encode("a<y>b", false), (Ids{1, 6, 2}));
  // A name that is pieced together across the border is no special token.
  const TextSegment split[] = {{"a <", true}, {"x", false}, {"> b", true}};
  EXPECT_EQ(tokenizer->encode(split), (Ids{1, 0, 2}));
  // Ordinary text is one text across the border.
  const TextSegment word[] = {{"<x>ab", true}, {"b", false}};
  EXPECT_EQ(tokenizer->encode(word), (Ids{5, 4}));
  EXPECT_TRUE(tokenizer->is_control(5));
  EXPECT_FALSE(tokenizer->is_control(6));
}

TEST(HfTokenizerTest, a_normalized_special_token_keeps_to_trusted_text_through_the_normalizer) {
  json file = small_file();
  file["normalizer"] = {{"type", "Sequence"},
                        {"normalizers",
                         {{{"type", "NFKC"}},
                          {{"type", "Lowercase"}},
                          {{"type", "Replace"}, {"pattern", {{"String", "--"}}}, {"content", "-"}},
                          {{"type", "Prepend"}, {"prepend", "_"}}}}};
  file["added_tokens"].push_back(added(5, "<--X>", true, true));
  const auto tokenizer = make(file);
  // Prepend works on the token's own text, too: it is found at the start only.
  EXPECT_EQ(tokenizer->encode("<--x>b", true), (Ids{5, 2}));
  EXPECT_EQ(tokenizer->encode("<-X> b", true), (Ids{5, 2}));
  EXPECT_EQ(tokenizer->encode("<--x> b", false), (Ids{0, 2}));
  const TextSegment mixed[] = {{"<-", true}, {"-", false}, {"X> b", true}};
  EXPECT_EQ(tokenizer->encode(mixed), (Ids{0, 2}));
  const TextSegment behind[] = {{"<--X>", true}, {" \uFF42", false}};
  EXPECT_EQ(tokenizer->encode(behind), (Ids{5, 2}));
}

TEST(HfTokenizerTest, flags_of_added_tokens_decide_what_is_found_and_swallowed) {
  json file = small_file();
  file["pre_tokenizer"] = nullptr;
  file["model"]["vocab"][" "] = 5;
  file["model"]["vocab"]["## "] = 6;
  file["model"]["vocab"]["##a"] = 7;
  json left = added(8, "<l>", true), right = added(9, "<r>", true), word = added(10, "w", false);
  left["lstrip"] = right["rstrip"] = word["single_word"] = true;
  for (const json& token : {left, right, word}) file["added_tokens"].push_back(token);
  const auto tokenizer = make(file);
  EXPECT_EQ(tokenizer->encode("a <l> a", true), (Ids{1, 8, 5, 7}));
  EXPECT_EQ(tokenizer->encode("a <r> \u3000a", true), (Ids{1, 6, 9, 1}));
  EXPECT_EQ(tokenizer->encode("<r>  <l>", true), (Ids{9, 8}));
  EXPECT_EQ(tokenizer->encode("w", false), (Ids{10}));
  EXPECT_EQ(tokenizer->encode("a w", false), (Ids{1, 6, 10}));
  EXPECT_EQ(tokenizer->encode("aw", false), (Ids{0}));
  EXPECT_EQ(tokenizer->encode("w\u00E9", false), (Ids{0}));
}

TEST(HfTokenizerTest, no_merge_makes_a_special_token_of_ordinary_text) {
  const json file = {{"added_tokens", json::array({added(3, "ab", true)})},
                     {"model",
                      {{"type", "BPE"},
                       {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"abc", 4}}},
                       {"merges", {"a b", "ab c"}}}}};
  const auto tokenizer = make(file);
  EXPECT_EQ(tokenizer->encode("ab", true), (Ids{3}));
  EXPECT_EQ(tokenizer->encode("ab", false), (Ids{0, 1}));
  EXPECT_EQ(tokenizer->encode("abc", false), (Ids{0, 1, 2}));
}

TEST(HfTokenizerTest, of_equal_merges_the_last_one_counts_in_both_spellings) {
  json file = {
      {"model",
       {{"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"ba", 3}}}, {"merges", {"a b", "b a", "a b"}}}}};
  EXPECT_EQ(make(file)->encode("aba"), (Ids{0, 3}));
  file["model"]["merges"] = json::parse(R"([["a", "b"], ["b", "a"], ["a", "b"]])");
  EXPECT_EQ(make(file)->encode("aba"), (Ids{0, 3}));
}

TEST(HfTokenizerTest, the_configuration_names_bos_and_eos_and_whether_prompts_get_them) {
  json file = small_file();
  file["added_tokens"].push_back(added(5, "<s>", true));
  file["added_tokens"].push_back(added(6, "</s>", true));
  file["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
        {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}}}},
      {"special_tokens", {{"<s>", {{"ids", {5}}}}, {"</s>", {{"ids", {6}}}}}}};
  const auto of = [](std::span<const TokenId> ids) { return Ids(ids.begin(), ids.end()); };
  const json names = {{"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}};
  const auto plain = make(file, config_of(names), {4});
  EXPECT_EQ(plain->bos_id(), 5);
  EXPECT_EQ(plain->eos_id(), 6);
  EXPECT_EQ(of(plain->eos_ids()), (Ids{6, 4}));
  EXPECT_EQ(of(plain->prefix_ids()), (Ids{5}));
  EXPECT_EQ(of(plain->suffix_ids()), (Ids{6}));
  json flags = names;
  flags["add_bos_token"] = true;
  flags["add_eos_token"] = false;
  const auto flagged = make(file, config_of(flags));
  EXPECT_EQ(of(flagged->prefix_ids()), (Ids{5}));
  EXPECT_EQ(of(flagged->suffix_ids()), (Ids{}));
  // Without a configuration the first further end is the end.
  EXPECT_EQ(make(file, {}, {6, 4})->eos_id(), 6);
}

TEST(HfTokenizerTest, tokens_of_the_configuration_join_and_win_over_those_of_the_file) {
  json file = small_file();
  file["added_tokens"].push_back(added(6, "<x>", false));
  const json config = {{"added_tokens_decoder",
                        {{"6", {{"content", "<x>"}, {"special", true}}},
                         {"7", {{"content", "<z>"}, {"special", true}}}}},
                       {"pad_token", "abb"}};
  const auto tokenizer = make(file, config_of(config));
  EXPECT_EQ(tokenizer->vocab_size(), 8);
  EXPECT_EQ(tokenizer->encode("<x><z>", true), (Ids{6, 7}));
  EXPECT_TRUE(tokenizer->is_control(6));
  EXPECT_TRUE(tokenizer->is_control(4)) << "a model's token that the configuration names";
  EXPECT_EQ(tokenizer->encode("abb", false), (Ids{1, 3, 3}));
  EXPECT_EQ(tokenizer->token_bytes(5), "") << "an id without a token";
}

TEST(HfTokenizerTest, added_tokens_that_the_weights_have_no_rows_for_are_text) {
  json file = small_file();
  file["added_tokens"].push_back(added(5, "<x>", true));
  file["added_tokens"].push_back(added(6, "<y>", true));
  HfTokenizerConfig config =
      config_of({{"added_tokens_decoder", {{"7", {{"content", "<z>"}, {"special", true}}}}}});
  EXPECT_EQ(make(file, config)->vocab_size(), 8);
  config.vocab_size = 6;
  const auto tokenizer = make(file, config);
  EXPECT_EQ(tokenizer->vocab_size(), 6);
  EXPECT_EQ(tokenizer->encode("a<x>b", true), (Ids{1, 5, 2}));
  EXPECT_EQ(tokenizer->encode("<y>", true), (Ids{0}));
  // The model's own tokens must all have one.
  config.vocab_size = 3;
  EXPECT_EQ(make(small_file(), config)->vocab_size(), 5);
}

TEST(HfTokenizerTest, chat_templates_come_as_text_as_a_list_or_as_a_file) {
  const json list = {
      {"chat_template",
       {{{"name", "default"}, {"template", "D"}}, {{"name", "tool_use"}, {"template", "T"}}}}};
  const auto named = config_of(list);
  EXPECT_EQ(*named.find_chat_template(false), "D");
  EXPECT_EQ(*named.find_chat_template(true), "T");
  const auto text = config_of({{"chat_template", "S"}});
  EXPECT_EQ(*text.find_chat_template(true), "S");
  const auto file = HfTokenizerConfig::read(list.dump(), "J");
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->find_chat_template(true), "J");
  const auto none = HfTokenizerConfig::read(std::nullopt, std::nullopt);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->find_chat_template(false), nullptr);
}

TEST(HfTokenizerTest, a_first_token_and_a_last_space_decode_as_the_reference_says) {
  const auto words = make(small_file());
  EXPECT_EQ(decode(*words, {1, 3, 2}), "ab b");
  EXPECT_EQ(decode(*words, {3, 2}), "##b b");
  json file = small_file();
  file["decoder"] = nullptr;
  EXPECT_EQ(decode(*make(file), {1, 2}), "a b");
  file["decoder"] = {{"type", "Metaspace"}};
  file["model"]["vocab"]["\u2581"] = 5;
  file["model"]["vocab"]["\u2581c\u2581"] = 6;
  EXPECT_EQ(decode(*make(file), {6, 6}), "c c ");
  EXPECT_EQ(decode(*make(file), {5, 6}), " c ");
  file["decoder"] = {{"type", "BPEDecoder"}, {"suffix", "b"}};
  EXPECT_EQ(decode(*make(file), {1, 2, 1, 2}), "a a");
}

TEST(HfTokenizerTest, what_is_not_known_is_refused_by_name) {
  const auto with = [](const char* key, const json& value) {
    json file = small_file();
    file[key] = value;
    return refusal(file);
  };
  EXPECT_EQ(
      with("normalizer", {{"type", "Rot13"}}).substr(0, 100),
      "tokenizer.json.normalizer.type: 'Rot13' is not supported; supported are Sequence, NFC, "
      "NFD, NFKC, NF");
  EXPECT_NE(with("pre_tokenizer", {{"type", "UnicodeScripts"}}).find("supported are"),
            std::string::npos);
  EXPECT_NE(with("post_processor", {{"type", "X"}}).find("supported are"), std::string::npos);
  EXPECT_NE(with("decoder", {{"type", "CTC"}}).find("supported are"), std::string::npos);
  EXPECT_NE(
      with("model", {{"type", "WordLevel"}, {"vocab", {{"[UNK]", 0}}}}).find("supported are BPE"),
      std::string::npos);
  EXPECT_EQ(
      with("pre_tokenizer",
           {{"type", "Split"}, {"pattern", {{"Regex", "(a)\\1"}}}, {"behavior", "Isolated"}}),
      "tokenizer.json.pre_tokenizer.pattern: expression '(a)\\1', byte 3: '\\1' can't be used");
  EXPECT_NE(with("decoder", {{"type", "Sequence"},
                             {"decoders", {{{"type", "Fuse"}}, {{"type", "ByteFallback"}}}}})
                .find("can't stand behind Fuse"),
            std::string::npos);
}

// Steps that make a text ten times as long, one behind the other.
TEST(HfTokenizerTest, steps_that_blow_up_a_text_are_refused) {
  const auto replace = [](const json& pattern, std::size_t length) {
    return json{{"type", "Replace"}, {"pattern", pattern}, {"content", std::string(length, 'a')}};
  };
  const auto with_normalizers = [](const json& steps) {
    json file = small_file();
    file["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    return refusal(file);
  };
  const auto with_decoders = [](const json& steps) {
    json file = small_file();
    file["decoder"] = {{"type", "Sequence"}, {"decoders", steps}};
    return refusal(file);
  };
  const json tenfold = replace({{"String", "a"}}, 10), any = replace({{"Regex", "."}}, 9);
  const std::string too_long = ": can make a text more than 2048 times as long";
  const std::string fourth = "tokenizer.json.normalizer.normalizers[3]" + too_long;
  EXPECT_EQ(with_normalizers(json(3, tenfold)), "accepted");
  EXPECT_EQ(with_normalizers(json(4, tenfold)), fourth);
  EXPECT_EQ(with_normalizers(json(4, any)), fourth);
  EXPECT_EQ(with_normalizers(json(4, {{"type", "Prepend"}, {"prepend", "a b c d e"}})), fourth);
  EXPECT_EQ(with_normalizers(json(12, {{"type", "ByteLevel"}})),
            "tokenizer.json.normalizer.normalizers[11]" + too_long);
  EXPECT_EQ(with_normalizers(json(65, {{"type", "NFC"}})),
            "tokenizer.json.normalizer.normalizers[64]: is one of more than 64 steps");
  EXPECT_EQ(with_normalizers(json(8, replace({{"String", "aaaaaaaaaa"}}, 10))), "accepted");
  EXPECT_EQ(with_decoders(json(3, tenfold)), "accepted");
  EXPECT_EQ(with_decoders(json(4, tenfold)), "tokenizer.json.decoder.decoders[3]" + too_long);
  json file = small_file();
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", json(12, {{"type", "ByteLevel"}, {"add_prefix_space", false}})}};
  EXPECT_EQ(refusal(file), "tokenizer.json.pre_tokenizer.pretokenizers[11]" + too_long);
}

TEST(HfTokenizerTest, broken_files_are_refused_with_the_place) {
  EXPECT_EQ(refusal(std::string("{")), "tokenizer.json: is not JSON (byte 2)");
  EXPECT_EQ(refusal(std::string("[]")), "tokenizer.json: must be an object");
  EXPECT_EQ(refusal(std::string("{}")), "tokenizer.json: model.vocab: is missing");
  EXPECT_EQ(refusal(std::string(100, '[')), "tokenizer.json: is nested deeper than 32");
  const auto with_model = [](const json& model) {
    json file = small_file();
    file["model"].update(model);
    return refusal(file);
  };
  EXPECT_EQ(with_model({{"vocab", {{"a", -1}}}}),
            "tokenizer.json: model.vocab: entry 0 must be a text and an integer from 0 to 4194303");
  EXPECT_EQ(with_model({{"vocab", {{"a", 1}, {"b", 1}}}}),
            "tokenizer.json: model.vocab: 'a' and 'b' are both 1");
  EXPECT_EQ(with_model({{"vocab", {{"a", 4000000}}}}),
            "tokenizer.json: id 4000000 is too large for 1 tokens");
  EXPECT_EQ(with_model({{"vocab", json::parse(R"([[["a"], 0.5]])")}}),
            "tokenizer.json: model.vocab: entry 0 must be a text and a number");
  EXPECT_EQ(with_model({{"unk_token", "[X]"}}),
            "tokenizer.json.model: unk_token '[X]' is no token");
  EXPECT_EQ(with_model({{"type", "BPE"}, {"merges", {"a b c"}}}),
            "tokenizer.json: model.merges: entry 0 must be two tokens: \"LEFT RIGHT\" or "
            "[\"LEFT\", \"RIGHT\"]");
  EXPECT_EQ(with_model({{"type", "BPE"}, {"merges", {"a b"}}}),
            "tokenizer.json.model.merges: entry 0 ('a b') makes 'ab', which is no token");
  EXPECT_EQ(with_model({{"type", "Unigram"}}),
            "tokenizer.json.model: vocab of Unigram must be an array of [text, score]");
  json file = small_file();
  file["added_tokens"].push_back(added(2, "x", true));
  EXPECT_EQ(refusal(file), "tokenizer.json: added_tokens: 'x' has id 2, which is 'b'");
  file["added_tokens"][1] = added(7, "b", true);
  EXPECT_EQ(refusal(file), "tokenizer.json: added_tokens: 'b' has id 7, but is 2 elsewhere");
  EXPECT_EQ(refusal(small_file().dump(), config_of({{"eos_token", "</s>"}})),
            "tokenizer.json: eos_token '</s>' of tokenizer_config.json is no token here");
}

}  // namespace
}  // namespace dunlin
