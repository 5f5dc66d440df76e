#include "kernels/kv_write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/float_tables_for_tests.h"
#include "quant/dequantize.h"

namespace dunlin {
namespace {

struct Cache {
  PagedKvLayer layer;
  std::vector<std::byte> bytes;

  Cache(int heads, int dim_k, int dim_v, KvFormats formats) {
    layer.num_kv_heads = heads;
    layer.head_dim_k = dim_k;
    layer.head_dim_v = dim_v;
    layer.k = key_part(formats.k, heads, dim_k);
    layer.v = value_part(formats.v, heads, dim_v);
    layer.k_offset = 64;  // another layer before
    layer.v_offset = layer.k_offset + layer.k.block_bytes;
    layer.block_stride = layer.v_offset + layer.v.block_bytes + 128;
    bytes.assign(static_cast<std::size_t>(3 * layer.block_stride), std::byte{0x5a});
    layer.base = bytes.data();
  }
};

std::vector<float> awkward_row(std::uint64_t seed, std::size_t n) {
  std::vector<float> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double scale = std::pow(2.0, 60 * uniform_at(seed, 1, i) - 40);
    row[i] = static_cast<float>((2 * uniform_at(seed, 0, i) - 1) * scale);
  }
  const float specials[] = {
      0.0f,          -0.0f,   65504.0f, 65519.9f,       65520.0f,
      -1e9f,         6e-8f,   2.9e-8f,  3e-8f,          6.1e-5f,
      1e-40f,        2049.0f, 2051.0f,  1.00048828125f, std::numeric_limits<float>::infinity(),
      -3.4028235e38f};
  for (std::size_t i = 0; i < std::size(specials) && i < n; ++i) row[i] = specials[i];
  return row;
}

TEST(KvWrite, PutsKeysDimensionMajorAndValuesTokenMajor) {
  Cache cache(2, 3, 5, {KvFormat::kF32, KvFormat::kF16});
  std::vector<float> k(6), v(10);
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i + 1);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i + 100);
  kv_write(Isa::kReference, cache.layer, 2 * kKvBlockSize + 7, k.data(), v.data());
  const std::byte* block = cache.bytes.data() + 2 * cache.layer.block_stride;
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t d = 0; d < 3; ++d) {
      float got;
      std::memcpy(&got, block + cache.layer.k_offset + ((h * 3 + d) * 16 + 7) * 4, 4);
      EXPECT_EQ(got, k[h * 3 + d]);
    }
    for (std::size_t d = 0; d < 5; ++d) {
      std::uint16_t got;
      std::memcpy(&got, block + cache.layer.v_offset + ((h * 16 + 7) * 5 + d) * 2, 2);
      EXPECT_EQ(f16_to_f32(got), v[h * 5 + d]);
    }
  }
}

class KvWriteTable : public testing::TestWithParam<NamedTable> {};
INSTANTIATE_TEST_SUITE_P(Isa, KvWriteTable, testing::ValuesIn(fast_tables()),
                         [](const auto& param) { return param.param.name; });

TEST_P(KvWriteTable, StoresTheReferencesBitsAndTouchesNothingElse) {
  for (int i = 0; i < kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    for (int dim : {8, 12, 64, 80, 100}) {
      Cache want(2, dim, dim + 4, format), got(2, dim, dim + 4, format);
      for (std::int64_t slot : {0, 5, 15, 31, 40}) {
        const auto seed = static_cast<std::uint64_t>(slot);
        const std::vector<float> k = awkward_row(seed, static_cast<std::size_t>(2 * dim));
        const std::vector<float> v = awkward_row(seed + 9, static_cast<std::size_t>(2 * dim + 8));
        reference_float_kernels().kv_write(want.layer, slot, k.data(), v.data());
        GetParam().table->kv_write(got.layer, slot, k.data(), v.data());
      }
      EXPECT_EQ(want.bytes, got.bytes) << kv_format_info(format).name << " " << dim;
    }
  }
}

TEST_P(KvWriteTable, WritesNoValuesWhereTheyLieInTheKeys) {
  const std::vector<float> k = awkward_row(3, 40);
  Cache stored(1, 40, 24, KvFormat::kF16), got(1, 40, 24, KvFormat::kF16);
  got.layer.values_in_keys = true;
  GetParam().table->kv_write(stored.layer, 17, k.data(), k.data());
  GetParam().table->kv_write(got.layer, 17, k.data(), nullptr);
  const auto behind_keys = [](const Cache& cache) {
    return cache.bytes.begin() + cache.layer.block_stride + cache.layer.v_offset;
  };
  EXPECT_TRUE(std::equal(got.bytes.cbegin(), behind_keys(got), stored.bytes.cbegin()));
  EXPECT_TRUE(std::all_of(behind_keys(got), got.bytes.cend(),
                          [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST_P(KvWriteTable, NoHalfIsInfiniteOrNaN) {
  Cache cache(1, 8, 8, {KvFormat::kF16, KvFormat::kBF16});
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {inf, -inf, std::nanf(""), 1e30f, -1e30f, 3.4e38f, 1, 0};
  GetParam().table->kv_write(cache.layer, 0, x.data(), x.data());
  for (int d = 0; d < 8; ++d) {
    std::uint16_t k, v;
    std::memcpy(&k, cache.bytes.data() + cache.layer.k_offset + d * 32, 2);
    std::memcpy(&v, cache.bytes.data() + cache.layer.v_offset + d * 2, 2);
    EXPECT_TRUE(std::isfinite(f16_to_f32(k))) << d;
    EXPECT_TRUE(std::isfinite(bf16_to_f32(v))) << d;
  }
}

}  // namespace
}  // namespace dunlin
