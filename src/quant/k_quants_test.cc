#include "quant/k_quants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "quant/quantize.h"

namespace dunlin {
namespace {

constexpr int kBlock = 256;
constexpr DType kFormats[] = {DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

std::vector<float> round_trip(DType dtype, const std::vector<float>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(dtype, n)));
  quantize(dtype, values.data(), bytes.data(), n);
  EXPECT_TRUE(all_finite(dtype, bytes.data(), n));
  std::vector<float> out(values.size());
  dequantize(dtype, bytes.data(), out.data(), n);
  return out;
}

std::vector<float> normal(int blocks, float deviation) {
  std::mt19937 generator(7);
  std::normal_distribution<float> draw(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(blocks * kBlock));
  for (float& value : values) value = draw(generator);
  return values;
}

double relative_error(const std::vector<float>& values, const std::vector<float>& got) {
  double error = 0, all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double{got[i]} - double{values[i]}, 2);
    all += std::pow(double{values[i]}, 2);
  }
  return std::sqrt(error / all);
}

// llama.cpp's quantiser, measured on 2 million normal numbers: 0.2964, 0.1508, 0.0713, 0.0361,
// 0.0177 of their deviation.
TEST(KQuants, lose_no_more_than_llama_cpp_on_normal_numbers) {
  constexpr double kPeer[] = {0.2964, 0.1508, 0.0713, 0.0361, 0.0177};
  const std::vector<float> values = normal(512, 0.02f);
  for (std::size_t i = 0; i < std::size(kFormats); ++i) {
    const double error = relative_error(values, round_trip(kFormats[i], values));
    EXPECT_LE(error, kPeer[i] * 1.02) << dtype_info(kFormats[i]).name;
    EXPECT_GE(error, kPeer[i] * 0.7) << dtype_info(kFormats[i]).name << ": too good to be true";
  }
}

TEST(KQuants, the_size_of_numbers_changes_little_down_to_the_smallest_scales) {
  for (const DType dtype : kFormats) {
    const double usual = relative_error(normal(64, 0.02f), round_trip(dtype, normal(64, 0.02f)));
    for (const float deviation : {1e-3f, 1.0f, 1e3f}) {
      const std::vector<float> values = normal(64, deviation);
      EXPECT_NEAR(relative_error(values, round_trip(dtype, values)) / usual, 1, 0.1)
          << dtype_info(dtype).name << " " << deviation;
    }
  }
}

// Random codes, scales and minima that use their whole range.
template <typename Block>
void set_scales(Block& block, std::mt19937& random) {
  if constexpr (std::is_same_v<Block, BlockQ2K>) {
    for (std::uint8_t& scale : block.scales)
      scale = static_cast<std::uint8_t>((random() % 15 + 1) | (random() % 15 + 1) << 4);
    block.scales[3] = 0xFF;
  } else if constexpr (std::is_same_v<Block, BlockQ3K>) {
    std::memset(block.scales, 0, sizeof(block.scales));  // -32 of all groups ...
    block.scales[1] = 0xF7;                              // ... but two, which differ
  } else if constexpr (std::is_same_v<Block, BlockQ6K>) {
    for (std::int8_t& scale : block.scales)
      scale = static_cast<std::int8_t>(static_cast<int>(random() % 200) - 100);
    block.scales[0] = -128;
  } else {
    for (std::uint8_t& byte : block.scales) byte = static_cast<std::uint8_t>(random() | 0x11);
    block.scales[2] = block.scales[6] = 0x3F;
  }
}

// Both ends of the range and a code beside one, so that nothing else says the same.
std::vector<int> codes_of_group(int size, int max, std::mt19937& random) {
  std::vector<int> codes;
  for (int j = 0; j < size; ++j)
    codes.push_back(j < 2 ? j * max : j == 2 ? 1 : static_cast<int>(random()) & max);
  return codes;
}

template <typename Block>
void exact(int group_size, int max_code) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Block block{};
    set_scales(block, random);
    block.d = f32_to_f16(0.013f);
    if constexpr (requires { block.dmin; }) block.dmin = f32_to_f16(0.021f);
    // Writing codes is what is tested: they are set through the numbers that they stand for.
    float zero[kBlock], one[kBlock], values[kBlock];
    dequantize_block(block, zero);
    Block ones = block;
    if constexpr (std::is_same_v<Block, BlockQ6K>)
      std::memset(ones.ql, 0x11, sizeof(ones.ql));
    else
      std::memset(ones.qs,
                  std::is_same_v<Block, BlockQ2K> || std::is_same_v<Block, BlockQ3K> ? 0x55 : 0x11,
                  sizeof(ones.qs));
    dequantize_block(ones, one);
    for (int g = 0; g < kBlock / group_size; ++g) {
      const std::vector<int> codes = codes_of_group(group_size, max_code, random);
      for (int j = 0; j < group_size; ++j) {
        const int i = g * group_size + j;
        values[i] = zero[i] + (one[i] - zero[i]) * static_cast<float>(codes[j]);
      }
    }
    Block again;
    quantize_block(values, again);
    float got[kBlock];
    dequantize_block(again, got);
    for (int i = 0; i < kBlock; ++i)
      ASSERT_NEAR(got[i], values[i], 2e-5f * std::fabs(one[i] - zero[i]) * 64)
          << dtype_info(Block::kDType).name << " " << i;
  }
}

TEST(KQuants, what_a_format_can_say_comes_back) {
  exact<BlockQ2K>(16, 3);
  exact<BlockQ3K>(16, 7);
  exact<BlockQ4K>(32, 15);
  exact<BlockQ5K>(32, 31);
  exact<BlockQ6K>(16, 63);
}

TEST(KQuants, zeros_stay_zeros_and_so_does_what_no_scale_is_small_enough_for) {
  std::vector<float> tiny(kBlock);
  for (std::size_t i = 0; i < tiny.size(); ++i) tiny[i] = (i % 2 == 0 ? 1e-42f : -1e-39f);
  for (const DType dtype : kFormats) {
    for (const float value : round_trip(dtype, std::vector<float>(kBlock))) EXPECT_EQ(value, 0);
    for (const float value : round_trip(dtype, tiny)) EXPECT_EQ(value, 0);
  }
}

TEST(KQuants, a_constant_comes_back) {
  for (const DType dtype : kFormats)
    for (const float constant : {0.037f, -0.037f, 512.0f, -3e4f})
      for (const float value : round_trip(dtype, std::vector<float>(kBlock, constant)))
        ASSERT_NEAR(value, constant, std::fabs(constant) * 5e-3f) << dtype_info(dtype).name;
}

// An outlier costs its own group and, by the shared unit, the resolution of the others; it is never
// lost itself.
TEST(KQuants, an_outlier_is_kept) {
  for (const DType dtype : kFormats) {
    for (const float outlier : {10.0f, -10.0f}) {
      std::vector<float> values = normal(1, 0.02f);
      values[77] = outlier;
      const std::vector<float> got = round_trip(dtype, values);
      EXPECT_NEAR(got[77], outlier, 0.1f) << dtype_info(dtype).name;
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_LE(std::fabs(got[i] - values[i]), 2.6f) << dtype_info(dtype).name << " " << i;
    }
  }
}

TEST(KQuants, numbers_too_large_for_a_scale_are_seen) {
  for (const DType dtype : kFormats) {
    for (const float large : {1e9f, -1e9f, 1e20f, std::numeric_limits<float>::max()}) {
      std::vector<float> values(kBlock, 0.5f);
      values[200] = large;
      std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(dtype, kBlock)));
      quantize(dtype, values.data(), bytes.data(), kBlock);
      EXPECT_FALSE(all_finite(dtype, bytes.data(), kBlock)) << dtype_info(dtype).name << large;
    }
  }
}

}  // namespace
}  // namespace dunlin
