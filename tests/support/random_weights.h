// A model's tensors with random values, in memory: a WeightSource for tests that need a model and
// no file. The same seed gives the same bits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/weight_source.h"
#include "model/config.h"

namespace dunlin::testing {

struct RandomWeightsOptions {
  std::uint64_t seed = 1;
  // Formats that the matrices take in turn. A format whose block does not divide a matrix's
  // columns is skipped for it; F32 where none fits.
  std::vector<DType> matrix_types = {DType::kF32};
  bool interleaved_qk = false;  // rows of Q and K as GGUF's llama family stores them
};

class RandomWeights final : public WeightSource {
 public:
  RandomWeights(const ModelConfig& config, const RandomWeightsOptions& options);

  std::optional<TensorView> find(std::string_view name) const override;
  bool interleaves_qk() const override { return interleaved_qk_; }
  void release(const TensorView& /*tensor*/) const override {}

  // For tests of refusals.
  void erase(const std::string& name) { tensors_.erase(name); }
  void add(const std::string& name, const TensorView& view) { tensors_[name].view = view; }
  TensorView& view(const std::string& name) { return tensors_.at(name).view; }
  std::vector<std::byte>& bytes(const std::string& name) { return tensors_.at(name).bytes; }

 private:
  struct Tensor {
    std::vector<std::byte> bytes;
    TensorView view;
  };
  std::map<std::string, Tensor, std::less<>> tensors_;
  bool interleaved_qk_ = false;
};

// Small, with sizes that are no round numbers: 3 query heads a KV head, a head of 16 that rotates
// 12 of its dimensions, and so on.
ModelConfig tiny_llama();
ModelConfig tiny_qwen2();
// Four window layers of every five, two RoPE bases, norms everywhere.
ModelConfig tiny_gemma3();
// Layer norms and biases everywhere, learned positions, no gate.
ModelConfig tiny_gpt2();
// The same as an encoder with token types, whose residual is normed itself.
ModelConfig tiny_bert();
// Attention and MLP side by side, each behind its own norm.
ModelConfig tiny_falcon();
// A dense layer, then experts in groups, with a correction bias, beside a gated shared one.
ModelConfig tiny_qwen2moe();
// Sinks, windows, experts with biases and a clamped gate.
ModelConfig tiny_gpt_oss();
// Latent attention with a dense MLP; queries through a latent of their own.
ModelConfig tiny_deepseek();

}  // namespace dunlin::testing
