// Ids and decoded texts of tokenizer.json files against Hugging Face's own tokenizers.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "text/detokenizer.h"
#include "text/hf_tokenizer.h"

namespace dunlin {
namespace {

using nlohmann::json;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::unique_ptr<Tokenizer> load(const std::string& folder) {
  auto made = make_hf_tokenizer(read_file(folder + "/tokenizer.json"), {}, {});
  if (!made) {
    ADD_FAILURE() << folder << ": " << made.error().message();
    return nullptr;
  }
  return std::move(*made);
}

std::string decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Detokenizer detokenizer(tokenizer);
  std::string out;
  for (TokenId id : ids) out += detokenizer.push(id);
  return out + detokenizer.finish();
}

std::vector<TokenId> with_specials(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::vector<TokenId> out(tokenizer.prefix_ids().begin(), tokenizer.prefix_ids().end());
  out.insert(out.end(), ids.begin(), ids.end());
  out.insert(out.end(), tokenizer.suffix_ids().begin(), tokenizer.suffix_ids().end());
  return out;
}

// Checks the lines of a reference.jsonl behind the first; gives how many there were.
int check_lines(const Tokenizer& tokenizer, const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  int count = 0;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const json row = json::parse(line);
    const std::string text = row.at("text");
    const auto ids = tokenizer.encode(text, /*trusted=*/true);
    EXPECT_EQ(ids, row.at("ids").get<std::vector<TokenId>>()) << path << ": " << row["text"].dump();
    EXPECT_EQ(with_specials(tokenizer, ids), row.at("ids_special").get<std::vector<TokenId>>());
    EXPECT_EQ(decode(tokenizer, row.at("ids").get<std::vector<TokenId>>()),
              row.at("decoded").get<std::string>())
        << path << ": " << row["text"].dump();
    ++count;
  }
  return count;
}

struct Golden {
  const char* name;
  int num_lines;
};
std::ostream& operator<<(std::ostream& out, const Golden& golden) { return out << golden.name; }

class HfFileTest : public testing::TestWithParam<Golden> {};

TEST_P(HfFileTest, ids_and_decoded_texts_equal_the_reference) {
  const std::string folder = std::string(DUNLIN_TEST_DATA_DIR "/hf_tokenizers/") + GetParam().name;
  const auto tokenizer = load(folder);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(check_lines(*tokenizer, folder + "/reference.jsonl"), GetParam().num_lines);
}

INSTANTIATE_TEST_SUITE_P(All, HfFileTest,
                         testing::Values(Golden{"hf-bpe-bytelevel", 71},
                                         Golden{"hf-bpe-gpt2-digits", 65},
                                         Golden{"hf-bpe-bytefallback", 65},
                                         Golden{"hf-unigram", 65}, Golden{"hf-wordpiece", 65}));

// One of the five with members of its file changed, and random texts: [text, ids, decoded or null].
int check_variant(const std::string& folder, const json& variant) {
  json file =
      json::parse(read_file(folder + variant.at("base").get<std::string>() + "/tokenizer.json"));
  for (const auto& [key, value] : variant.at("set").items()) {
    if (key == "model") {
      file["model"].update(value);
    } else {
      file[key] = value;
    }
  }
  const auto made = make_hf_tokenizer(file.dump(), {}, {});
  EXPECT_TRUE(made) << made.error().message();
  if (!made) return 0;
  int count = 0;
  for (const json& row : variant.at("rows")) {
    const auto expected = row[1].get<std::vector<TokenId>>();
    EXPECT_EQ((*made)->encode(row[0].get<std::string>(), /*trusted=*/true), expected)
        << variant.at("set").dump().substr(0, 2000) << "\n"
        << row[0].dump();
    if (!row[2].is_null()) {
      EXPECT_EQ(decode(**made, expected), row[2].get<std::string>())
          << variant.at("set").dump().substr(0, 2000);
    }
    ++count;
  }
  return count;
}

TEST(HfGoldenTest, random_texts_through_random_chains_of_steps_equal_the_reference) {
  const std::string folder = DUNLIN_TEST_DATA_DIR "/hf_tokenizers/";
  std::ifstream in(folder + "variants.jsonl");
  ASSERT_TRUE(in);
  int count = 0;
  for (std::string line; std::getline(in, line);) count += check_variant(folder, json::parse(line));
  EXPECT_EQ(count, 3684);
}

}  // namespace
}  // namespace dunlin
