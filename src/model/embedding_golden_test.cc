// Hidden states against those that transformers gives in float32 (tools/make_embedding_golden.py):
// of a tiny BERT in every form that is read, and of the tiny Llama.
#include <cmath>
#include <fstream>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "model/open_model.h"
#include "model/sequence_set.h"
#include "support/reference_checks.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr float kTolerance = 1e-4f;  // of values of size 1
constexpr int kLongest = 310;

const std::string kBert = DUNLIN_TEST_DATA_DIR "/embeddings/tiny-bert";
const std::string kLlama = DUNLIN_TEST_DATA_DIR "/tiny/llama";

json read(const std::string& path) { return json::parse(std::ifstream(path)); }

OpenedModel open(const std::string& path, Isa isa) {
  LoadOptions options;
  options.isa = isa;
  options.kv_formats = KvFormat::kF32;
  auto opened = open_model(path, options);
  EXPECT_TRUE(opened) << opened.error().message();
  return std::move(*opened);
}

// Holds hidden states against golden["hidden"], {"POSITION": [...]}; in steps of `chunk` tokens.
void check_hidden(Model& model, const json& golden, int chunk, std::string_view what) {
  const std::vector<TokenId> ids = golden["ids"];
  SequenceSet set(model, 1, kLongest, kLongest, 1);
  std::vector<std::int32_t> all(kLongest);
  std::iota(all.begin(), all.end(), 0);
  std::vector<float> hidden;
  for (std::size_t at = 0; at < ids.size(); at += static_cast<std::size_t>(chunk)) {
    const std::size_t size = std::min(ids.size() - at, static_cast<std::size_t>(chunk));
    const SequenceSet::Part part{
        0, std::span(ids).subspan(at, size), {}, std::span(all).first(size)};
    set.step({&part, 1});
    hidden.insert(hidden.end(), set.hidden().begin(), set.hidden().end());
  }
  for (const auto& [position, row] : golden["hidden"].items()) {
    const std::vector<float> want = row;
    ASSERT_EQ(want.size(), static_cast<std::size_t>(model.limits().hidden_size));
    const float* got = hidden.data() + std::stoul(position) * want.size();
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], kTolerance) << what << " at " << position << ", " << i;
  }
}

TEST(BertGolden, EveryInstructionSetGivesTheReferencesHiddenStates) {
  for (const Isa isa : supported_isas()) {
    const OpenedModel opened = open(kBert, isa);
    EXPECT_EQ(opened.model->limits().pooling, Pooling::kMean);
    for (const json& text : read(kBert + "/reference.json"))
      check_hidden(*opened.model, text, kLongest, isa_name(isa));
  }
}

TEST(BertGolden, TheSameAsGguf) {
  const ScratchFolder scratch;
  const std::string path = testing::converted_to_gguf(kBert, scratch);
  ASSERT_FALSE(HasFailure());
  const OpenedModel opened = open(path, best_isa());
  EXPECT_TRUE(opened.model->limits().is_encoder);
  EXPECT_EQ(opened.model->limits().pooling, Pooling::kMean);
  for (const json& text : read(kBert + "/reference.json"))
    check_hidden(*opened.model, text, kLongest, "gguf");
}

TEST(LlamaGolden, HiddenStatesAreTheReferencesWholeAndInChunks) {
  for (const Isa isa : supported_isas()) {
    const OpenedModel opened = open(kLlama, isa);
    EXPECT_EQ(opened.model->limits().pooling, Pooling::kLast);
    const json golden = read(DUNLIN_TEST_DATA_DIR "/embeddings/llama.json");
    for (const int chunk : {kLongest, 13, 1})
      check_hidden(*opened.model, golden, chunk, isa_name(isa));
  }
}

// A folder of config.json and what else is given, opened as far as it goes.
std::string refusal(const std::string& file, const json& content) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch.path() + "/1_Pooling");
  std::ofstream(scratch.path() + "/config.json") << read(kBert + "/config.json");
  std::ofstream(scratch.path() + "/" + file) << content;
  const auto checkpoint = HfCheckpoint::open(scratch.path());
  return checkpoint ? "" : checkpoint.error().message();
}

json config_with(const std::string& key, const json& value) {
  json config = read(kBert + "/config.json");
  config[key] = value;
  return config;
}

TEST(BertRefusals, NameWhatWouldMakeOtherEmbeddings) {
  EXPECT_THAT(refusal("config.json", config_with("hidden_act", "relu")), HasSubstr("hidden_act"));
  EXPECT_THAT(refusal("config.json", config_with("position_embedding_type", "relative_key")),
              HasSubstr("relative_key"));
  EXPECT_THAT(refusal("config.json", config_with("is_decoder", true)), HasSubstr("is_decoder"));
  EXPECT_THAT(refusal("config.json", config_with("architectures", {"NomicBertModel"})),
              HasSubstr("NomicBertModel"));
  EXPECT_THAT(refusal("1_Pooling/config.json", {{"pooling_mode_max_tokens", true}}),
              HasSubstr("pooling 'max'"));
  EXPECT_THAT(refusal("1_Pooling/config.json",
                      {{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", true}}),
              HasSubstr("cls and mean"));
  EXPECT_THAT(refusal("1_Pooling/config.json", {{"pooling_mode", "weightedmean"}}),
              HasSubstr("weightedmean"));
  EXPECT_THAT(refusal("modules.json", {{{"type", "sentence_transformers.models.Dense"}}}),
              HasSubstr("Dense"));
  EXPECT_THAT(refusal("modules.json", json::object()), HasSubstr("array"));
  EXPECT_THAT(refusal("modules.json", {{{"kind", 1}}}), HasSubstr("\"type\""));
}

}  // namespace
}  // namespace dunlin
