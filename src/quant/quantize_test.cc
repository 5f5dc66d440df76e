// Known answers of another implementation (tools/make_quant_golden.py), to the bit.
#include "quant/quantize.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quant/dequantize.h"

namespace dunlin {
namespace {

struct Record {
  std::string kind;
  DType dtype = DType::kF32;
  std::vector<std::byte> bytes;
  std::vector<float> floats;
};

DType dtype_by_name(const std::string& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (dtype_info(static_cast<DType>(i)).name == name) return static_cast<DType>(i);
  }
  ADD_FAILURE() << "no type " << name;
  return DType::kF32;
}

std::vector<Record> read_golden() {
  std::ifstream in(DUNLIN_TESTS_DIR "/golden/quant/blocks.bin", std::ios::binary);
  std::vector<Record> records;
  char kind[17] = {}, name[17] = {};
  std::uint32_t counts[2];
  while (in.read(kind, 16) && in.read(name, 16)) {
    in.read(reinterpret_cast<char*>(counts), sizeof(counts));
    Record record{kind, dtype_by_name(name), std::vector<std::byte>(counts[1]),
                  std::vector<float>(counts[0])};
    in.read(reinterpret_cast<char*>(record.bytes.data()), counts[1]);
    in.read(reinterpret_cast<char*>(record.floats.data()), counts[0] * sizeof(float));
    EXPECT_TRUE(in);
    records.push_back(std::move(record));
  }
  return records;
}

TEST(Dequantize, EqualsTheReferenceToTheBitInEveryFormat) {
  int num_formats = 0;
  for (const Record& record : read_golden()) {
    if (record.kind != "dequantize") continue;
    ++num_formats;
    const auto n = static_cast<std::int64_t>(record.floats.size());
    ASSERT_EQ(row_bytes(record.dtype, n), static_cast<std::int64_t>(record.bytes.size()));
    // One byte off: the source may be unaligned.
    std::vector<std::byte> shifted(record.bytes.size() + 1);
    std::memcpy(shifted.data() + 1, record.bytes.data(), record.bytes.size());
    std::vector<float> out(record.floats.size());
    dequantize(record.dtype, shifted.data() + 1, out.data(), n);
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], record.floats[i]) << dtype_info(record.dtype).name << " element " << i;
    }
  }
  EXPECT_EQ(num_formats, 15);
}

// Where a format keeps its scales, from the comments of quant/*.h.
std::vector<std::size_t> scale_bytes(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: return {0, 2};
    case DType::kQ2_K: return {80, 82};
    case DType::kQ3_K: return {108};
    case DType::kQ6_K: return {208};
    default: return {0};
  }
}

TEST(AllFinite, SeesInfinitiesAndNansInEveryFormat) {
  for (const Record& record : read_golden()) {
    if (record.kind != "dequantize") continue;
    const auto n = static_cast<std::int64_t>(record.floats.size());
    EXPECT_TRUE(all_finite(record.dtype, record.bytes.data(), n));
    const bool top_half = record.dtype == DType::kF32;  // of its four bytes
    for (const std::size_t at : scale_bytes(record.dtype)) {
      for (const std::uint16_t high : {0x7FC0, 0x7F80, 0xFF80}) {  // no number in f16 and bf16
        const auto block = static_cast<std::size_t>(dtype_info(record.dtype).block_bytes);
        std::vector<std::byte> bytes = record.bytes;
        std::memcpy(bytes.data() + bytes.size() - block + at + (top_half ? 2 : 0), &high, 2);
        EXPECT_FALSE(all_finite(record.dtype, bytes.data(), n))
            << dtype_info(record.dtype).name << " byte " << at;
      }
    }
  }
}

TEST(Quantize, EqualsTheReferenceToTheBitInEveryFormat) {
  int num_formats = 0;
  for (const Record& record : read_golden()) {
    if (record.kind != "quantize") continue;
    ++num_formats;
    ASSERT_TRUE(can_quantize(record.dtype));
    std::vector<std::byte> out(record.bytes.size());
    quantize(record.dtype, record.floats.data(), out.data(),
             static_cast<std::int64_t>(record.floats.size()));
    const int block_bytes = dtype_info(record.dtype).block_bytes;
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], record.bytes[i])
          << dtype_info(record.dtype).name << " block " << i / static_cast<std::size_t>(block_bytes)
          << " byte " << i % static_cast<std::size_t>(block_bytes);
    }
  }
  EXPECT_EQ(num_formats, 7);
}

TEST(Half, EveryF16ComesBackFromF32) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool is_nan = (bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0;
    // A signalling NaN comes back quiet.
    ASSERT_EQ(f32_to_f16(f16_to_f32(half)), is_nan ? half | 0x200 : half) << bits;
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(half)), (bits & 0x7FFF) > 0x7F80 ? half | 0x40 : half)
        << bits;
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1.0p-11f), 0x3C00);   // a tie, down to even
  EXPECT_EQ(f32_to_f16(1.0f + 0x1.8p-10f), 0x3C02);   // a tie, up to even
  EXPECT_EQ(f32_to_f16(1.0f + 0x1.01p-11f), 0x3C01);  // just above a tie
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xFC00);
  EXPECT_EQ(f32_to_f16(0x1.0p-25f), 0x0000);  // half the smallest, to even
  EXPECT_EQ(f32_to_f16(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(f32_to_f16(-0x1.8p-24f), 0x8002);
  EXPECT_EQ(f32_to_f16(0x1.FFFFFEp-15f), 0x0400);  // rounds up into the normals
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1.0p-8f), 0x3F80);
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1.8p-7f), 0x3F82);
}

}  // namespace
}  // namespace dunlin
