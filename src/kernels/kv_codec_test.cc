#include "kernels/kv_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "base/rng.h"
#include "kernels/kv_scale.h"

namespace dunlin {
namespace {

std::vector<float> normal_row(std::uint64_t seed, int n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    double sum = -6;  // of twelve uniform numbers
    for (std::uint64_t j = 0; j < 12; ++j) sum += uniform_at(seed, j, i);
    x[i] = static_cast<float>(sum);
  }
  return x;
}

// The nearest of all numbers that a byte can be, and of two the one with an even last bit.
std::uint8_t nearest(float x, float (*widen)(std::uint8_t), float largest) {
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int bits = 0; bits < 128; ++bits) {
    const double size = widen(static_cast<std::uint8_t>(bits));
    if (!(size <= largest)) continue;
    const double distance = std::abs(std::abs(double{x}) - size);
    if (distance < least || (distance == least && bits % 2 == 0)) best = bits, least = distance;
  }
  return static_cast<std::uint8_t>(best | (std::signbit(x) ? 0x80 : 0));
}

TEST(KvCodec, RoundsToTheNearestFp8) {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double size = std::pow(2.0, 40 * uniform_at(1, 0, i) - 22);
    const auto x = static_cast<float>(uniform_at(1, 1, i) < 0.5 ? size : -size);
    EXPECT_EQ(f32_to_fp8_e4m3(x), nearest(x, fp8_e4m3_to_f32, 448)) << x;
    EXPECT_EQ(f32_to_fp8_e5m2(x), nearest(x, fp8_e5m2_to_f32, 57344)) << x;
  }
  for (const float x : {0.0f, -0.0f, 0.0009765625f, 0.0029296875f, 17.0f, 19.0f, 447.9f, 1e9f}) {
    EXPECT_EQ(f32_to_fp8_e4m3(x), nearest(x, fp8_e4m3_to_f32, 448)) << x;
    EXPECT_EQ(f32_to_fp8_e5m2(x), nearest(x, fp8_e5m2_to_f32, 57344)) << x;
  }
}

TEST(KvCodec, KnowsTheNamedValuesOfFp8) {
  EXPECT_EQ(fp8_e4m3_to_f32(0x7e), 448);
  EXPECT_EQ(fp8_e4m3_to_f32(0x01), 0.001953125f);
  EXPECT_EQ(fp8_e4m3_to_f32(0x38), 1);
  EXPECT_EQ(fp8_e5m2_to_f32(0x7b), 57344);
  EXPECT_EQ(fp8_e5m2_to_f32(0x01), 0.0000152587890625f);
  EXPECT_EQ(fp8_e5m2_to_f32(0xbc), -1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::abs(fp8_e4m3_to_f32(f32_to_fp8_e4m3(nan))) == 448);
  EXPECT_TRUE(std::abs(fp8_e5m2_to_f32(f32_to_fp8_e5m2(nan))) == 57344);
}

TEST(KvCodec, RotationIsItsOwnInverseAndKeepsProducts) {
  const std::vector<float> a = normal_row(1, 192), b = normal_row(2, 192);
  std::vector<float> ra = a, rb = b;
  rotate_channels(ra.data(), 192, 64, 1);
  rotate_channels(rb.data(), 192, 64, 1.0f / 64);
  double product = 0, rotated = 0;
  for (std::size_t i = 0; i < a.size(); ++i) product += double{a[i]} * b[i];
  for (std::size_t i = 0; i < a.size(); ++i) rotated += double{ra[i]} * rb[i];
  EXPECT_NEAR(product, rotated, 1e-4);
  rotate_channels(ra.data(), 192, 64, 1.0f / 64);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], ra[i], 1e-6);
}

TEST(KvCodec, AnOutlierIsSpreadOverItsTurn) {
  std::vector<float> x(64, 0.0f);
  x[17] = 100;
  rotate_channels(x.data(), 64, 64, 1);
  for (const float value : x) EXPECT_EQ(std::abs(value), 100);
}

// What comes back differs by the format's step: half an ulp, or half a code of a group.
TEST(KvCodec, ReadsBackWhatWasWritten) {
  struct Case {
    KvFormat format;
    double relative_rms;
  };
  for (const auto& [format, most] : {Case{KvFormat::kFp8E4M3, 0.03}, Case{KvFormat::kFp8E5M2, 0.06},
                                     Case{KvFormat::kInt8, 0.008}, Case{KvFormat::kInt4, 0.11}}) {
    for (const int dim : {4, 20, 64, 80, 96, 112, 128, 256}) {
      const KvPart keys = key_part(format, 3, dim), values = value_part(format, 3, dim);
      std::vector<std::byte> block(static_cast<std::size_t>(keys.block_bytes), std::byte{0xff});
      std::vector<std::byte> v_block(static_cast<std::size_t>(values.block_bytes), std::byte{0xff});
      std::vector<std::vector<float>> rows;
      for (int t = 0; t < kKvBlockSize; ++t) {
        rows.push_back(normal_row(static_cast<std::uint64_t>(t), 3 * dim));
        write_kv_keys(keys, block.data(), t, rows.back().data());
        write_kv_values(values, v_block.data(), t, rows.back().data());
      }
      std::vector<float> k(static_cast<std::size_t>(16 * dim)), v = k;
      double k_error = 0, v_error = 0, size = 0;
      for (int h = 0; h < 3; ++h) {
        read_kv_keys(keys, block.data(), h, k.data());
        read_kv_values(values, v_block.data(), h, v.data());
        for (int t = 0; t < kKvBlockSize; ++t) {
          for (int d = 0; d < dim; ++d) {
            const double x =
                rows[static_cast<std::size_t>(t)][static_cast<std::size_t>(h * dim + d)];
            k_error += std::pow(k[static_cast<std::size_t>(d * 16 + t)] - x, 2);
            v_error += std::pow(v[static_cast<std::size_t>(t * dim + d)] - x, 2);
            size += x * x;
          }
        }
      }
      EXPECT_LT(std::sqrt(k_error / size), most) << kv_format_info(format).name << " " << dim;
      EXPECT_LT(std::sqrt(v_error / size), most) << kv_format_info(format).name << " " << dim;
      EXPECT_GT(std::sqrt(k_error / size), most / 20);
    }
  }
}

// Tokens are written from different workers, in any order, over what was there.
TEST(KvCodec, ATokenTouchesNoOthersBits) {
  for (const KvFormat format :
       {KvFormat::kFp8E4M3, KvFormat::kFp8E5M2, KvFormat::kInt8, KvFormat::kInt4}) {
    const KvPart keys = key_part(format, 2, 80), values = value_part(format, 2, 80);
    std::vector<std::byte> up(static_cast<std::size_t>(keys.block_bytes + values.block_bytes));
    std::vector<std::byte> down(up.size(), std::byte{0xff});
    const auto write = [&](std::vector<std::byte>& block, int t) {
      const std::vector<float> row = normal_row(static_cast<std::uint64_t>(t), 160);
      write_kv_keys(keys, block.data(), t, row.data());
      write_kv_values(values, block.data() + keys.block_bytes, t, row.data());
    };
    std::set<std::size_t> touched;
    for (int t = 0; t < kKvBlockSize; ++t) {
      const std::vector<std::byte> before = up;
      write(up, t);
      for (std::size_t i = 0; i < up.size(); ++i)
        if (up[i] != before[i]) {
          EXPECT_TRUE(touched.insert(i).second) << i;
        }
    }
    for (int t = kKvBlockSize - 1; t >= 0; --t) write(down, t);
    for (const std::size_t i : touched) EXPECT_EQ(up[i], down[i]);
  }
}

TEST(KvCodec, CodesOfAwkwardNumbersAreFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
    for (const std::vector<float>& row :
         {std::vector<float>{inf, -inf, std::nanf(""), 3e38f, 0, 0, 0, 1},
          std::vector<float>(8, 0.0f), std::vector<float>(8, 1e-38f), std::vector<float>(8, -1e-5f),
          std::vector<float>(8, 1e30f)}) {
      const KvPart part = key_part(format, 1, 8);
      std::vector<std::byte> block(static_cast<std::size_t>(part.block_bytes));
      write_kv_keys(part, block.data(), 3, row.data());
      std::vector<float> keys(8 * 16);
      read_kv_keys(part, block.data(), 0, keys.data());
      for (std::size_t d = 0; d < 8; ++d) {
        const float got = keys[d * 16 + 3];
        EXPECT_TRUE(std::isfinite(got)) << got;
        if (std::abs(row[d]) < 1) {
          EXPECT_NEAR(got, row[d], 1e-2) << kv_format_info(format).name;
        }
      }
    }
  }
}

TEST(KvScale, Int4ScalesAreTheLeastThatSuffice) {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto x = static_cast<float>(std::pow(2.0, 31 * uniform_at(3, 0, i) - 19.5));
    const std::uint32_t bits = kv_int4_scale_bits(x);
    const auto of = [](std::uint32_t b) {
      return kv_scale(KvFormat::kInt4, static_cast<std::uint16_t>(b << 6)).scale;
    };
    EXPECT_GE(of(bits), x);
    EXPECT_LT(of(bits - 1), x);
    EXPECT_LE(of(bits), x * 1.032f);
  }
  EXPECT_EQ(kv_int4_scale_bits(0), 0u);
}

TEST(KvFormat, NamesAreFoundAgain) {
  for (int i = 0; i < kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    EXPECT_EQ(find_kv_format(kv_format_info(format).name), format);
  }
  EXPECT_FALSE(find_kv_format("int5"));
  EXPECT_EQ(kv_format_names().size(), static_cast<std::size_t>(kNumKvFormats));
}

TEST(KvFormat, PartsAreAlignedAndShrink) {
  struct Case {
    KvFormat format;
    double most;  // of f16's bytes
  };
  for (const auto& [format, most] : {Case{KvFormat::kFp8E4M3, 0.5}, Case{KvFormat::kFp8E5M2, 0.5},
                                     Case{KvFormat::kInt8, 0.53}, Case{KvFormat::kInt4, 0.28}}) {
    for (const auto& [heads, dim] : {std::pair{2, 64}, {3, 64}, {1, 256}, {8, 128}, {1, 576}}) {
      const std::int64_t bytes =
          key_part(format, heads, dim).block_bytes + value_part(format, heads, dim).block_bytes;
      const std::int64_t f16 = key_part(KvFormat::kF16, heads, dim).block_bytes +
                               value_part(KvFormat::kF16, heads, dim).block_bytes;
      EXPECT_LE(static_cast<double>(bytes), most * static_cast<double>(f16)) << heads << " " << dim;
      EXPECT_EQ(bytes % 64, 0);
      EXPECT_EQ(key_part(format, heads, dim).scales_at % 64, 0);
    }
  }
}

TEST(KvFormat, TurnsAsManyChannelsAsDivideTheHead) {
  const auto rotation = [](int dim, int values) {
    return key_part(KvFormat::kInt8, 1, dim, values).rotation;
  };
  EXPECT_EQ(rotation(64, 0), 64);
  EXPECT_EQ(rotation(256, 0), 64);
  EXPECT_EQ(rotation(80, 0), 16);
  EXPECT_EQ(rotation(20, 0), 4);
  EXPECT_EQ(rotation(576, 512), 64);
  EXPECT_EQ(rotation(32, 24), 8);
  EXPECT_EQ(key_part(KvFormat::kF16, 1, 64).rotation, 1);
}

}  // namespace
}  // namespace dunlin
