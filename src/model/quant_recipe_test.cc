#include "model/quant_recipe.h"

#include <gtest/gtest.h>

#include "model/config.h"

namespace dunlin {
namespace {

TensorView matrix(std::int64_t cols) {
  TensorView view;
  view.dtype = DType::kBF16;
  view.rank = 2;
  view.shape = {64, cols, 1, 1};
  return view;
}

ModelConfig config_of(int num_layers, bool tied) {
  ModelConfig config;
  config.layers.resize(static_cast<std::size_t>(num_layers));
  config.tied_head = tied;
  return config;
}

DType type(std::string_view recipe, std::string_view tensor, std::int64_t cols = 512,
           const ModelConfig& config = config_of(16, false)) {
  const auto found = QuantRecipe::find(recipe);
  EXPECT_TRUE(found) << recipe;
  return found->type_of(tensor, matrix(cols), config);
}

TEST(QuantRecipe, every_name_is_found_and_others_are_not) {
  EXPECT_EQ(QuantRecipe::names().size(), 15u);
  for (const std::string& name : QuantRecipe::names())
    EXPECT_EQ(QuantRecipe::find(name)->name(), name);
  EXPECT_FALSE(QuantRecipe::find("q4_k_s"));
  EXPECT_FALSE(QuantRecipe::find(""));
}

TEST(QuantRecipe, rows_that_are_no_whole_blocks_get_short_ones_or_f16) {
  const std::tuple<const char*, DType, DType> cases[] = {
      {"q2_k", DType::kQ2_K, DType::kIQ4_NL}, {"q3_k", DType::kQ3_K, DType::kIQ4_NL},
      {"q4_k", DType::kQ4_K, DType::kQ5_0},   {"q5_k", DType::kQ5_K, DType::kQ5_1},
      {"q6_k", DType::kQ6_K, DType::kQ8_0},   {"q8_0", DType::kQ8_0, DType::kQ8_0},
  };
  for (const auto& [recipe, whole, short_blocks] : cases) {
    EXPECT_EQ(type(recipe, "blk.0.attn_q.weight", 512), whole);
    EXPECT_EQ(type(recipe, "blk.0.attn_q.weight", 576), short_blocks);
    EXPECT_EQ(type(recipe, "blk.0.attn_q.weight", 80), DType::kF16);
  }
  EXPECT_EQ(type("bf16", "blk.0.attn_q.weight", 80), DType::kBF16);
}

TEST(QuantRecipe, vectors_routers_and_positions_are_never_quantised) {
  const auto recipe = QuantRecipe::find("q4_k");
  const ModelConfig config = config_of(2, false);
  for (const char* name : {"blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_inp_shexp.weight",
                           "position_embd.weight", "token_types.weight"}) {
    EXPECT_EQ(recipe->type_of(name, matrix(512), config), DType::kF32) << name;
    EXPECT_EQ(loaded_type(recipe, name, matrix(512), config), DType::kBF16) << name;
  }
  TensorView vector = matrix(512);
  vector.rank = 1;
  vector.shape = {512, 1, 1, 1};
  EXPECT_EQ(recipe->type_of("blk.0.attn_norm.weight", vector, config), DType::kF32);
}

TEST(QuantRecipe, mixes_keep_the_head_values_and_down_projections_better) {
  // Of 16 layers: 0, 1 and 14, 15, and 4, 7, 10, 13 between.
  std::string better;
  for (int layer = 0; layer < 16; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const DType values = type("q4_k_m", prefix + "attn_v.weight");
    for (const char* other : {"ffn_down.weight", "ffn_down_exps.weight", "ffn_down.5.weight"})
      EXPECT_EQ(type("q4_k_m", prefix + other), values);
    EXPECT_EQ(type("q4_k_m", prefix + "attn_q.weight"), DType::kQ4_K);
    if (values == DType::kQ6_K) better += std::to_string(layer) + " ";
  }
  EXPECT_EQ(better, "0 1 4 7 10 13 14 15 ");
  EXPECT_EQ(type("q4_k_m", "output.weight"), DType::kQ6_K);
  EXPECT_EQ(type("q4_k_m", "token_embd.weight"), DType::kQ4_K);
  EXPECT_EQ(type("q5_k_m", "token_embd.weight", 512, config_of(16, true)), DType::kQ6_K);
  EXPECT_EQ(type("q4_k_m", "output.weight", 576), DType::kQ8_0);
  EXPECT_EQ(type("q4_k", "output.weight"), DType::kQ4_K);
}

}  // namespace
}  // namespace dunlin
