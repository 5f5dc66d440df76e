// Checkpoints in MXFP4 and block FP8: written here from the tiny golden ones, and equal to folders
// that hold the same numbers as floats, to the bit of the logits.
#include "model/hf_quantized.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/convert.h"
#include "model/open_model.h"
#include "model/single_sequence.h"
#include "quant/dequantize.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using nlohmann::json;

struct Stored {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};
using Tensors = std::map<std::string, Stored>;

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// The golden folder's tensors, as F32.
Tensors read_golden(const std::string& name) {
  Tensors tensors;
  const auto stored = Safetensors::open_folder(DUNLIN_TEST_DATA_DIR "/tiny/" + name);
  EXPECT_TRUE(stored) << stored.error().message();
  for (const SafetensorsTensor& tensor : (*stored)->tensors()) {
    const TensorView& view = tensor.view;
    std::vector<float> values(static_cast<std::size_t>(view.num_elements()));
    dequantize(view.dtype, view.data, values.data(), view.num_elements());
    tensors[tensor.name] = {
        "F32", {view.shape.begin(), view.shape.begin() + view.rank}, bytes_of(values)};
  }
  return tensors;
}

std::vector<float> floats_of(const Stored& stored) {
  std::vector<float> values(stored.bytes.size() / sizeof(float));
  std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
  return values;
}

class Folder {
 public:
  Folder(const std::string& golden, const Tensors& tensors, const json& quantization) {
    json config =
        json::parse(std::ifstream(DUNLIN_TEST_DATA_DIR "/tiny/" + golden + "/config.json"));
    if (!quantization.is_null()) config["quantization_config"] = quantization;
    std::ofstream(path() + "/config.json") << config;
    json header = json::object();
    std::size_t at = 0;
    for (const auto& [name, tensor] : tensors) {
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", tensor.shape},
                      {"data_offsets", {at, at + tensor.bytes.size()}}};
      at += tensor.bytes.size();
    }
    const std::string text = header.dump();
    const std::uint64_t size = text.size();
    std::ofstream out(path() + "/model.safetensors", std::ios::binary);
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out << text;
    for (const auto& [name, tensor] : tensors) out << tensor.bytes;
  }
  const std::string& path() const { return scratch_.path(); }

  std::string refusal() const {
    const auto opened = open_model(path(), {});
    return opened ? "" : opened.error().message();
  }

 private:
  ScratchFolder scratch_;
};

std::vector<float> logits_of(const std::string& path, Isa isa) {
  LoadOptions options;
  options.isa = isa;
  options.kv_formats = KvFormat::kF32;
  const auto opened = open_model(path, options);
  if (!opened) {
    ADD_FAILURE() << opened.error().message();
    return {};
  }
  const std::vector<TokenId> ids = {3, 17, 40, 5, 99, 21, 8, 64};
  SingleSequence sequence(*opened->model, 64, 16);
  const std::span<const float> row = sequence.append(ids);
  return {row.begin(), row.end()};
}

void expect_equal_models(const Folder& quantised, const Folder& plain) {
  const std::vector<float> wanted = logits_of(plain.path(), Isa::kReference);
  EXPECT_EQ(logits_of(quantised.path(), Isa::kReference), wanted);
  // And through a GGUF file.
  const ScratchFolder scratch;
  const std::string file = scratch.path() + "/model.gguf";
  const auto checkpoint = HfCheckpoint::open(quantised.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  ASSERT_TRUE(convert_to_gguf(**checkpoint, file, {}));
  EXPECT_EQ(logits_of(file, Isa::kReference), wanted);
  EXPECT_EQ(logits_of(file, best_isa()), logits_of(quantised.path(), best_isa()));
}

// --- MXFP4

constexpr float kFp4[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -.5f, -1, -1.5f, -2, -3, -4, -6};

// Rewrites `name` [experts, in, out] as blocks [experts, out, in / 32, 16] and scales; gives the
// tensor of the numbers that those stand for.
Stored to_mxfp4(const std::string& name, Tensors& tensors) {
  const Stored from = tensors.at(name);
  const std::vector<float> values = floats_of(from);
  const std::int64_t experts = from.shape[0], in = from.shape[1], out = from.shape[2];
  std::vector<float> kept(values.size());
  std::string blocks, scales;
  for (std::int64_t e = 0; e < experts; ++e) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t first = 0; first < in; first += 32) {
        const auto at = [&](std::int64_t i) {
          return static_cast<std::size_t>((e * in + first + i) * out + o);
        };
        float largest = 0;
        for (std::int64_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[at(i)]));
        const int exponent = largest == 0 ? -127 : std::ilogb(largest) - 2;
        int codes[32];
        for (std::int64_t i = 0; i < 32; ++i) {
          const float scaled = std::ldexp(values[at(i)], -exponent);
          int best = 0;
          for (int code = 1; code < 16; ++code)
            if (std::fabs(kFp4[code] - scaled) < std::fabs(kFp4[best] - scaled)) best = code;
          codes[i] = best;
          kept[at(i)] = std::ldexp(kFp4[best], exponent);
        }
        for (int i = 0; i < 32; i += 2)
          blocks.push_back(static_cast<char>(codes[i] | codes[i + 1] << 4));
        scales.push_back(static_cast<char>(exponent + 127));
      }
    }
  }
  tensors.erase(name);
  tensors[name + "_blocks"] = {"U8", {experts, out, in / 32, 16}, blocks};
  tensors[name + "_scales"] = {"U8", {experts, out, in / 32}, scales};
  return {"F32", from.shape, bytes_of(kept)};
}

const json kMxfp4 = {{"quant_method", "mxfp4"}, {"modules_to_not_convert", json::array()}};
const char* const kFirstExperts = "model.layers.0.mlp.experts.gate_up_proj";

class Mxfp4 : public ::testing::Test {
 protected:
  Mxfp4() : quantised_(read_golden("gpt-oss")), plain_(quantised_) {
    for (const auto& [name, tensor] : read_golden("gpt-oss"))
      if (name.ends_with("experts.gate_up_proj") || name.ends_with("experts.down_proj"))
        plain_[name] = to_mxfp4(name, quantised_);
  }
  std::string refusal(const json& quantization = kMxfp4) const {
    return Folder("gpt-oss", quantised_, quantization).refusal();
  }
  Tensors quantised_, plain_;
};

TEST_F(Mxfp4, gives_the_logits_of_the_same_numbers) {
  expect_equal_models(Folder("gpt-oss", quantised_, kMxfp4), Folder("gpt-oss", plain_, nullptr));
}

TEST_F(Mxfp4, stays_as_it_is_where_other_weights_are_quantised) {
  const Folder folder("gpt-oss", quantised_, kMxfp4);
  LoadOptions options;
  options.recipe = QuantRecipe::find("q8_0");
  const auto opened = open_model(folder.path(), options);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_GT(opened->summary.bytes_by_dtype.at(DType::kQ5_0), 0);
  EXPECT_GT(opened->summary.bytes_by_dtype.at(DType::kQ8_0), 0);
}

TEST_F(Mxfp4, wrong_tensors_are_refused_by_name) {
  const std::string blocks = std::string(kFirstExperts) + "_blocks";
  const std::string scales = std::string(kFirstExperts) + "_scales";
  const Stored good = quantised_.at(scales);
  quantised_.at(scales).shape = {good.shape[0], good.shape[1] * good.shape[2]};
  EXPECT_NE(refusal().find(scales), std::string::npos) << refusal();
  quantised_.erase(scales);
  EXPECT_NE(refusal().find(scales), std::string::npos) << refusal();
  quantised_[scales] = good;
  quantised_.at(scales).bytes[5] = static_cast<char>(255);
  EXPECT_NE(refusal().find("not a finite number"), std::string::npos) << refusal();
  quantised_[scales] = good;
  auto& shape = quantised_.at(blocks).shape;
  shape = {shape[0], shape[1], shape[2] * 2, 8};
  EXPECT_NE(refusal().find(blocks), std::string::npos) << refusal();
  EXPECT_NE(refusal(json{{"quant_method", "gptq"}}).find("gptq"), std::string::npos);
}

// --- FP8

// The nearest code, by trying all.
std::uint8_t to_f8(float value) {
  static const std::vector<std::pair<float, std::uint8_t>> kAll = [] {
    std::vector<std::pair<float, std::uint8_t>> all;
    for (int bits = 0; bits < 256; ++bits) {
      const float number = f8_e4m3_to_f32(static_cast<std::uint8_t>(bits));
      if (!std::isnan(number)) all.emplace_back(number, static_cast<std::uint8_t>(bits));
    }
    std::sort(all.begin(), all.end());
    return all;
  }();
  const auto above = std::lower_bound(kAll.begin(), kAll.end(), std::pair(value, std::uint8_t{0}));
  if (above == kAll.end()) return kAll.back().second;
  if (above == kAll.begin() || above->first - value < value - std::prev(above)->first)
    return above->second;
  return std::prev(above)->second;
}

constexpr std::int64_t kBlock = 48;  // so that the last one of most tensors is cut off

// Rewrites `name` [out, in] as F8_E4M3 with scales; gives the tensor of the numbers in BF16.
Stored to_fp8(const std::string& name, Tensors& tensors) {
  const Stored from = tensors.at(name);
  const std::vector<float> values = floats_of(from);
  const std::int64_t out = from.shape[0], in = from.shape[1];
  const std::int64_t across = (in + kBlock - 1) / kBlock;
  const std::int64_t down = (out + kBlock - 1) / kBlock;
  std::vector<float> factors(static_cast<std::size_t>(down * across));
  for (std::int64_t i = 0; i < out * in; ++i) {
    float& factor = factors[static_cast<std::size_t>(i / in / kBlock * across + i % in / kBlock)];
    factor = std::max(factor, std::fabs(values[static_cast<std::size_t>(i)]) / 448);
  }
  std::string codes;
  std::vector<float> kept;
  for (std::int64_t i = 0; i < out * in; ++i) {
    const float factor =
        factors[static_cast<std::size_t>(i / in / kBlock * across + i % in / kBlock)];
    const std::uint8_t code = to_f8(values[static_cast<std::size_t>(i)] / factor);
    codes.push_back(static_cast<char>(code));
    kept.push_back(bf16_to_f32(f32_to_bf16(f8_e4m3_to_f32(code) * factor)));
    EXPECT_NEAR(kept.back(), values[static_cast<std::size_t>(i)], 18 * factor);
  }
  tensors[name] = {"F8_E4M3", {out, in}, codes};
  tensors[name + "_scale_inv"] = {"F32", {down, across}, bytes_of(factors)};
  return {"F32", from.shape, bytes_of(kept)};
}

const json kFp8 = {{"quant_method", "fp8"},
                   {"fmt", "e4m3"},
                   {"activation_scheme", "dynamic"},
                   {"weight_block_size", {kBlock, kBlock}}};

class Fp8 : public ::testing::Test {
 protected:
  Fp8() : quantised_(read_golden("deepseek-v3")), plain_(quantised_) {
    for (const auto& [name, tensor] : read_golden("deepseek-v3"))
      if (name.ends_with("_proj.weight") || name.ends_with("_proj_with_mqa.weight"))
        plain_[name] = to_fp8(name, quantised_);
  }
  std::string refusal(const json& quantization = kFp8) const {
    return Folder("deepseek-v3", quantised_, quantization).refusal();
  }
  Tensors quantised_, plain_;
};

TEST_F(Fp8, gives_the_logits_of_the_same_numbers) {
  expect_equal_models(Folder("deepseek-v3", quantised_, kFp8),
                      Folder("deepseek-v3", plain_, nullptr));
}

TEST_F(Fp8, wrong_tensors_and_settings_are_refused_by_name) {
  const std::string name = "model.layers.0.self_attn.kv_b_proj.weight";
  const std::string scales = name + "_scale_inv";
  const Stored good = quantised_.at(scales);
  quantised_.at(scales).shape = {1, good.shape[0] * good.shape[1]};
  EXPECT_NE(refusal().find(scales), std::string::npos) << refusal();
  quantised_.erase(scales);
  EXPECT_NE(refusal().find(scales + "' is missing"), std::string::npos) << refusal();
  quantised_[scales] = good;
  EXPECT_EQ(refusal(), "");
  json other = kFp8;
  other["weight_block_size"] = nullptr;
  EXPECT_NE(refusal(other).find("weight_block_size"), std::string::npos) << refusal(other);
  other = kFp8;
  other["fmt"] = "e5m2";
  EXPECT_NE(refusal(other).find("e4m3"), std::string::npos) << refusal(other);
  EXPECT_NE(refusal(nullptr).find("F8_E4M3"), std::string::npos) << refusal(nullptr);
}

TEST(F8E4M3, has_the_values_of_its_specification) {
  EXPECT_EQ(f8_e4m3_to_f32(0x00), 0.0f);
  EXPECT_EQ(f8_e4m3_to_f32(0x01), 0x1p-9f);  // the smallest
  EXPECT_EQ(f8_e4m3_to_f32(0x07), 7 * 0x1p-9f);
  EXPECT_EQ(f8_e4m3_to_f32(0x08), 0x1p-6f);  // the smallest normal
  EXPECT_EQ(f8_e4m3_to_f32(0x38), 1.0f);
  EXPECT_EQ(f8_e4m3_to_f32(0xB9), -1.125f);
  EXPECT_EQ(f8_e4m3_to_f32(0x7E), 448.0f);  // the largest
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0x7F)));
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0xFF)));
}

}  // namespace
}  // namespace dunlin
