// Which type each tensor of a model gets where its weights are quantised: one rule for `convert`
// and for loading, so that both give the same weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace dunlin {

struct ModelConfig;

class QuantRecipe {
 public:
  // "f16", "q8_0", "q4_k", "q4_k_m"; names() in the order of size. nullopt: no such recipe.
  static std::optional<QuantRecipe> find(std::string_view name);
  static std::vector<std::string> names();
  // The same of what a user wrote: the refusal lists the names. "" is no recipe.
  static Result<std::optional<QuantRecipe>> parse(std::string_view name);

  std::string_view name() const { return row_->name; }
  // llama.cpp's number for a file that is mostly of this type (general.file_type).
  std::uint32_t file_type() const { return row_->file_type; }

  // The type of the tensor of that canonical name. What is never quantised is F32. The other
  // matrices get the recipe's type, or where their rows are no whole blocks of it one with blocks
  // of 32 and no fewer bits (Q2_K, Q3_K: IQ4_NL; Q4_K: Q5_0; Q5_K: Q5_1; Q6_K: Q8_0), else F16. In
  // the mixes q4_k_m and q5_k_m the matrix that gives logits is Q6_K, and so are attn_v and
  // ffn_down in the first and the last eighth of the layers and in every third between: llama.cpp's
  // rule.
  DType type_of(std::string_view tensor, const TensorView& view, const ModelConfig& config) const;

 private:
  struct Row {
    std::string_view name;
    DType main;
    DType better;  // of what a mix keeps better; the same type in what is no mix
    std::uint32_t file_type;
  };
  static const Row kRows[];
  explicit QuantRecipe(const Row& row) : row_(&row) {}

  const Row* row_;
};

// Vectors, biases of experts, their routers, learned positions: no recipe quantises them.
bool is_never_quantized(std::string_view tensor, const TensorView& view);

// The type that a tensor is kept in once loaded: its own without a recipe, where no recipe
// quantises it, and where it is quantised already.
DType loaded_type(const std::optional<QuantRecipe>& recipe, std::string_view tensor,
                  const TensorView& view, const ModelConfig& config);

}  // namespace dunlin
