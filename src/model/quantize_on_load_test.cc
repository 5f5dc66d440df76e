// Weights quantised on load are those of the file that convert writes, to the bit of the logits.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/convert.h"
#include "model/open_model.h"
#include "model/single_sequence.h"
#include "support/hf_folder.h"
#include "support/scratch_folder.h"
#include "support/tiny_model.h"

namespace dunlin {
namespace {

std::vector<TokenId> some_ids(int vocab_size) {
  std::vector<TokenId> ids;
  for (int i = 0; i < 12; ++i) ids.push_back((i * 37 + 5) % vocab_size);
  return ids;
}

// All logits of a short text.
std::vector<float> logits_of(const std::string& path, const LoadOptions& options) {
  Result<OpenedModel> opened = open_model(path, options);
  if (!opened) {
    ADD_FAILURE() << opened.error().message();
    return {};
  }
  const std::vector<TokenId> ids = some_ids(opened->config.vocab_size);
  std::vector<std::int32_t> positions;
  for (std::size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<std::int32_t>(i));
  std::vector<float> logits;
  SingleSequence sequence(*opened->model, 64, 64);
  sequence.append(ids, positions, [&](std::int32_t, std::span<const float> row) {
    logits.insert(logits.end(), row.begin(), row.end());
  });
  return logits;
}

void expect_the_same(const std::string& folder, std::string_view recipe) {
  const ScratchFolder scratch;
  const std::string file = scratch.path() + "/model.gguf";
  ConvertOptions convert;
  convert.recipe = QuantRecipe::find(recipe);
  const auto checkpoint = HfCheckpoint::open(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const Outcome converted = convert_to_gguf(**checkpoint, file, convert);
  ASSERT_TRUE(converted) << converted.error().message();
  for (const Isa isa : {Isa::kReference, best_isa()}) {
    LoadOptions options;
    options.isa = isa;
    const std::vector<float> wanted = logits_of(file, options);
    options.recipe = convert.recipe;
    EXPECT_EQ(logits_of(folder, options), wanted) << folder << " " << recipe;
    EXPECT_FALSE(wanted.empty());
  }
}

// Rows of whole long blocks, Q and K in either order, a head of its own and a tied one.
TEST(QuantizeOnLoad, gives_the_logits_of_the_converted_file) {
  for (const char* architecture : {"llama", "qwen2"}) {
    TinyModelOptions tiny;
    tiny.architecture = architecture;
    tiny.hidden_size = tiny.ffn_size = 256;
    tiny.head_dim = 64;
    tiny.num_layers = 4;
    tiny.tied = architecture[0] == 'q';
    const TinyModelFile file(tiny);
    const ScratchFolder scratch;
    const std::string folder = scratch.path() + "/model";
    const Outcome written = write_hf_folder(file.path(), folder, DType::kBF16);
    ASSERT_TRUE(written) << written.error().message();
    for (const std::string& recipe : QuantRecipe::names()) expect_the_same(folder, recipe);
    // A plain GGUF file may be quantised as well.
    const std::string plain = scratch.path() + "/plain.gguf";
    ASSERT_TRUE(convert_to_gguf(**HfCheckpoint::open(folder), plain, {}));
    LoadOptions options;
    options.recipe = QuantRecipe::find("q4_k_m");
    EXPECT_EQ(logits_of(plain, options), logits_of(folder, options));
  }
}

// Experts, fused projections, heads' own matrices, what transforms make; short rows.
TEST(QuantizeOnLoad, holds_for_every_architecture) {
  int num_folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DUNLIN_TEST_DATA_DIR "/tiny")) {
    if (!entry.is_directory()) continue;
    for (const char* recipe : {"q8_0", "q4_k", "q4_k_m"})
      expect_the_same(entry.path().string(), recipe);
    ++num_folders;
  }
  EXPECT_GE(num_folders, 25);
}

TEST(QuantizeOnLoad, what_is_quantised_already_is_refused) {
  TinyModelOptions tiny;
  tiny.dtype = DType::kQ8_0;
  const TinyModelFile file(tiny);
  LoadOptions options;
  options.recipe = QuantRecipe::find("q4_0");
  const auto opened = open_model(file.path(), options);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("quantised already, as Q8_0"), std::string::npos)
      << opened.error().message();
}

// The summary is of the weights as loaded.
TEST(QuantizeOnLoad, the_summary_tells_the_loaded_types) {
  const std::string folder = DUNLIN_TEST_DATA_DIR "/tiny/llama";
  LoadOptions options;
  options.recipe = QuantRecipe::find("q8_0");
  const auto opened = open_model(folder, options);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->summary.main_dtype, "Q8_0");
}

class ConvertFaults : public ::testing::Test {
 protected:
  // A tiny model in F32 with one value changed, in the first row of the first layer's Q.
  void make(float value) {
    const TinyModelFile file(TinyModelOptions{});
    const Outcome written = write_hf_folder(file.path(), folder_, DType::kF32);
    ASSERT_TRUE(written) << written.error().message();
    const std::string path = folder_ + "/model.safetensors";
    std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t size = 0;
    bytes.read(reinterpret_cast<char*>(&size), sizeof size);
    std::string text(size, ' ');
    bytes.read(text.data(), static_cast<std::streamsize>(size));
    const auto header = nlohmann::json::parse(text);
    const std::uint64_t at = header["model.layers.0.self_attn.q_proj.weight"]["data_offsets"][0];
    bytes.seekp(static_cast<std::streamoff>(8 + size + at));
    bytes.write(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string refusal(const char* recipe) {
    const auto checkpoint = HfCheckpoint::open(folder_);
    EXPECT_TRUE(checkpoint);
    ConvertOptions options;
    options.recipe = QuantRecipe::find(recipe);
    const Outcome converted = convert_to_gguf(**checkpoint, out_, options);
    EXPECT_FALSE(std::filesystem::exists(out_ + ".part"));
    EXPECT_EQ(std::filesystem::exists(out_), converted.has_value());
    std::filesystem::remove(out_);
    return converted ? "" : converted.error().message();
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path() + "/model", out_ = scratch_.path() + "/out.gguf";
};

TEST_F(ConvertFaults, a_value_that_is_no_number_is_refused_in_every_type) {
  make(NAN);
  for (const char* recipe : {"f32", "f16", "q8_0", "q4_0", "q6_k", ""}) {
    const std::string message = refusal(recipe);
    EXPECT_NE(message.find("model.layers.0.self_attn.q_proj.weight"), std::string::npos) << message;
    EXPECT_NE(message.find("row 0"), std::string::npos) << message;
  }
}

TEST_F(ConvertFaults, a_value_that_a_type_cannot_hold_is_refused_in_it) {
  make(1e6f);
  EXPECT_NE(refusal("f16").find("too large for F16"), std::string::npos);
  for (const char* recipe : {"f32", "bf16", "q8_0", ""}) EXPECT_EQ(refusal(recipe), "") << recipe;
  make(1e12f);
  EXPECT_NE(refusal("q8_0").find("too large for Q8_0"), std::string::npos);
  LoadOptions options;
  options.recipe = QuantRecipe::find("q8_0");
  const auto opened = open_model(folder_, options);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("too large for Q8_0"), std::string::npos);
}

TEST_F(ConvertFaults, a_stopped_conversion_leaves_nothing) {
  make(0.5f);
  ConvertOptions options;
  int calls = 0;
  options.progress = [&](std::int64_t, std::int64_t) { return ++calls < 3; };
  const Outcome converted = convert_to_gguf(**HfCheckpoint::open(folder_), out_, options);
  ASSERT_FALSE(converted);
  EXPECT_EQ(converted.error().code(), StatusCode::kCancelled);
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(std::filesystem::exists(out_ + ".part"));
  EXPECT_FALSE(std::filesystem::exists(out_));
}

}  // namespace
}  // namespace dunlin
