#include "support/random_weights.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "base/rng.h"
#include "model/weights.h"
#include "quant/dequantize.h"

namespace dunlin::testing {
namespace {

// Where the 16-bit floats of a format's block lie; -1: there is no second one.
struct ScalePlaces {
  int scale;
  int minimum;
};

ScalePlaces scale_places(DType dtype) {
  switch (dtype) {
    case DType::kQ2_K: return {80, 82};
    case DType::kQ3_K: return {108, -1};
    case DType::kQ6_K: return {208, -1};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: return {0, 2};
    default: return {0, -1};
  }
}

// Values of a block with scale 1, roughly: what the scale must be for weights of size 1.
float largest_value(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0: return 8;
    case DType::kQ4_1:
    case DType::kQ5_0: return 16;
    case DType::kQ5_1: return 32;
    case DType::kQ8_0:
    case DType::kIQ4_NL: return 127;
    case DType::kQ2_K: return 3 * 15;
    case DType::kQ3_K: return 4 * 32;
    case DType::kQ4_K: return 15 * 63;
    case DType::kQ5_K: return 31 * 63;
    case DType::kQ6_K: return 32 * 127;
    case DType::kIQ4_XS: return 127 * 32;
    default: return 1;
  }
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : seed_(seed) {}

  double uniform() { return uniform_at(seed_, 7, position_++); }
  float normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * uniform()));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t position_ = 0;
};

void put_f16(std::vector<std::byte>& bytes, std::size_t at, float value) {
  const std::uint16_t bits = f32_to_f16(value);
  std::memcpy(bytes.data() + at, &bits, sizeof(bits));
}

std::vector<std::byte> random_floats(Generator& random, DType dtype, std::int64_t count,
                                     float deviation, float mean) {
  const auto size = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const float value = mean + deviation * random.normal();
    const std::uint16_t half = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    const void* source = dtype == DType::kF32 ? static_cast<const void*>(&value) : &half;
    std::memcpy(bytes.data() + i * size, source, size);
  }
  return bytes;
}

std::vector<std::byte> random_blocks(Generator& random, DType dtype, std::int64_t num_blocks,
                                     float deviation) {
  const DTypeInfo& info = dtype_info(dtype);
  const auto size = static_cast<std::size_t>(info.block_bytes);
  std::vector<std::byte> bytes(static_cast<std::size_t>(num_blocks) * size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.uniform() * 256.0);
  const ScalePlaces places = scale_places(dtype);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    const float scale =
        deviation * 2.0f / largest_value(dtype) * static_cast<float>(0.5 + random.uniform());
    put_f16(bytes, at + static_cast<std::size_t>(places.scale), scale);
    if (places.minimum < 0) continue;
    // K formats subtract their minimum, the plain ones add it: either way about the middle.
    const bool subtracts = info.block_size == 256;
    const float minimum = subtracts ? scale * (dtype == DType::kQ2_K   ? 1.5f
                                               : dtype == DType::kQ4_K ? 7.5f
                                                                       : 15.5f)
                                    : -deviation;
    put_f16(bytes, at + static_cast<std::size_t>(places.minimum), minimum);
  }
  return bytes;
}

}  // namespace

RandomWeights::RandomWeights(const ModelConfig& config, const RandomWeightsOptions& options)
    : interleaved_qk_(options.interleaved_qk) {
  Generator random(options.seed);
  Weights unused;
  std::size_t turn = 0;
  for (const TensorSlot& slot : tensor_slots(config, unused)) {
    Tensor& tensor = tensors_[slot.name];
    TensorView& view = tensor.view;
    if (slot.vector != nullptr) {
      view = {DType::kF32, 1, {slot.cols, 1, 1, 1}, nullptr};
      const bool is_bias = slot.name.ends_with(".bias");
      tensor.bytes = random_floats(random, DType::kF32, slot.cols, 0.2f, is_bias ? 0.0f : 1.0f);
    } else {
      DType dtype = DType::kF32;
      for (std::size_t i = 0; i < options.matrix_types.size(); ++i) {
        const DType next = options.matrix_types[turn++ % options.matrix_types.size()];
        if (slot.cols % dtype_info(next).block_size != 0) continue;
        dtype = next;
        break;
      }
      view = {dtype, 2, {slot.rows, slot.cols, 1, 1}, nullptr};
      const float deviation = 1.5f / std::sqrt(static_cast<float>(slot.cols));
      tensor.bytes =
          dtype_info(dtype).block_size == 1
              ? random_floats(random, dtype, slot.rows * slot.cols, deviation, 0.0f)
              : random_blocks(random, dtype, slot.rows * slot.cols / dtype_info(dtype).block_size,
                              deviation);
    }
    view.data = tensor.bytes.data();
  }
}

std::optional<TensorView> RandomWeights::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return std::nullopt;
  return it->second.view;
}

ModelConfig tiny_llama() {
  ModelConfig config;
  config.architecture = "llama";
  config.hidden_size = 96;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  config.ffn_size = 160;
  config.vocab_size = 331;
  config.context_length = 1024;
  config.norm_eps = 1e-5f;
  config.attention_scale = 0.25f;
  config.tied_head = true;
  config.ropes = {RopeConfig{.theta = 10000.0f, .dims = 12}};
  config.layers.assign(3, LayerConfig{});
  return config;
}

ModelConfig tiny_qwen2() {
  ModelConfig config = tiny_llama();
  config.architecture = "qwen2";
  config.qkv_bias = true;
  config.tied_head = false;
  config.num_heads = 7;
  config.num_kv_heads = 1;
  config.ropes = {RopeConfig{.theta = 1e6f, .dims = 16}};
  return config;
}

ModelConfig tiny_gemma3() {
  ModelConfig config = tiny_llama();
  config.architecture = "gemma3";
  config.activation = Activation::kGeluTanh;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 32;
  config.attention_scale = 1.0f / std::sqrt(32.0f);
  config.embedding_scale = std::sqrt(96.0f);
  config.qk_norm = QkNorm::kHeads;
  config.post_norms = true;
  config.ropes = {RopeConfig{.theta = 1e6f, .dims = 32, .position_divisor = 8.0f},
                  RopeConfig{.theta = 10000.0f, .dims = 32}};
  config.layers.assign(5, LayerConfig{40, 1});
  config.layers.back() = LayerConfig{0, 0};
  return config;
}

ModelConfig tiny_gpt2() {
  ModelConfig config = tiny_llama();
  config.architecture = "gpt2";
  config.norm = NormType::kLayer;
  config.norm_bias = true;
  config.gated_mlp = false;
  config.activation = Activation::kGeluTanh;
  config.qkv_bias = config.o_bias = config.ffn_bias = true;
  config.learned_positions = true;
  config.context_length = 257;
  config.num_kv_heads = config.num_heads;
  for (LayerConfig& layer : config.layers) layer.rope_idx = kNoRope;
  return config;
}

ModelConfig tiny_bert() {
  ModelConfig config = tiny_gpt2();
  config.architecture = "bert";
  config.activation = Activation::kGeluErf;
  config.context_length = 301;
  config.pre_norms = false;
  config.norms_residual = true;
  config.num_token_types = 2;
  config.is_encoder = true;
  config.pooling = Pooling::kMean;
  return config;
}

ModelConfig tiny_falcon() {
  ModelConfig config = tiny_llama();
  config.architecture = "falcon";
  config.norm = NormType::kLayer;
  config.norm_bias = true;
  config.gated_mlp = false;
  config.activation = Activation::kGeluErf;
  config.parallel = config.parallel_norms = true;
  return config;
}

ModelConfig tiny_deepseek() {
  ModelConfig config = tiny_llama();
  config.architecture = "deepseek2";
  config.num_heads = 5;
  config.num_kv_heads = 1;
  config.latent = {.kv_rank = 64, .q_rank = 40, .nope_dim = 32, .rope_dim = 12, .value_dim = 24};
  config.head_dim = 64 + 12;
  config.attention_scale = 1.0f / std::sqrt(32.0f + 12.0f);
  config.ropes = {RopeConfig{.theta = 10000.0f, .dims = 12, .style = RopeStyle::kInterleaved}};
  return config;
}

ModelConfig tiny_qwen2moe() {
  ModelConfig config = tiny_qwen2();
  config.architecture = "qwen2moe";
  config.moe = {.num_experts = 9,
                .experts_per_token = 4,
                .ffn_size = 64,
                .scoring = ExpertScoring::kSigmoid,
                .normalize = true,
                .scale = 1.5f,
                .correction_bias = true,
                .num_groups = 3,
                .groups_per_token = 2,
                .two_score_a_group = true,
                .shared_ffn_size = 192,
                .shared_gate = true};
  for (std::size_t i = 1; i < config.layers.size(); ++i) config.layers[i].has_experts = true;
  return config;
}

ModelConfig tiny_gpt_oss() {
  ModelConfig config = tiny_llama();
  config.architecture = "gpt-oss";
  config.activation = Activation::kClampedSwiglu;
  config.qkv_bias = config.o_bias = config.attention_sinks = true;
  config.ffn_norm_is_post_attention = true;
  config.moe = {.num_experts = 5,
                .experts_per_token = 2,
                .ffn_size = 160,
                .scoring = ExpertScoring::kSoftmaxOfChosen,
                .bias = true};
  config.layers = {LayerConfig{40, 0, true}, LayerConfig{0, 0, true}, LayerConfig{40, 0, true}};
  return config;
}

}  // namespace dunlin::testing
