#include "kernels/gemm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/gemm_dispatch.h"
#include "kernels/gemm_tables_for_tests.h"
#include "kernels/gemm_test_support.h"

namespace dunlin {
namespace {

using testing::kBlockTypes;
using testing::kPlainTypes;
using testing::random_floats;
using testing::random_matrix;
using testing::StoredMatrix;

std::vector<DType> all_types() {
  std::vector<DType> types(std::begin(kBlockTypes), std::end(kBlockTypes));
  for (const DType dtype : kPlainTypes) types.push_back(dtype);
  return types;
}

std::string name_of(DType dtype) { return std::string(dtype_info(dtype).name); }

// y [tokens, rows] of one matrix; x [tokens, cols].
std::vector<float> product(Isa isa, const StoredMatrix& w, const std::vector<float>& x,
                           std::int64_t tokens, int threads = 1, const float* bias = nullptr) {
  ThreadPool pool(threads);
  const PackedMatrix packed = PackedMatrix::pack(w.view(), RowOrder{}, isa, pool).value();
  Activations rows;
  rows.reserve(tokens, w.cols, true);
  rows.reset(w.cols);
  for (std::int64_t t = 0; t < tokens; ++t) rows.set_row(isa, t, x.data() + t * w.cols);
  std::vector<float> y(static_cast<std::size_t>(tokens * w.rows), NAN);
  const GemmTask task{.weights = &packed, .bias = bias, .y = y.data(), .y_stride = w.rows};
  EXPECT_EQ(gemm(pool, isa, {&task, 1}, rows, tokens), packed.size_bytes());
  return y;
}

// The same through one kernel table, for tables that this machine does not dispatch to.
std::vector<float> product_with(const GemmKernels& kernels, const StoredMatrix& w,
                                const std::vector<float>& x, std::int64_t tokens) {
  ThreadPool pool(1);
  const PackedMatrix packed =
      PackedMatrix::pack(w.view(), RowOrder{}, Isa::kReferenceQ8, pool).value();
  Activations rows;
  rows.reserve(tokens, w.cols, true);
  rows.reset(w.cols);
  for (std::int64_t t = 0; t < tokens; ++t) {
    rows.set_row(Isa::kReferenceQ8, t, x.data() + t * w.cols);
    kernels.quantize_row(rows.rows(), t, x.data() + t * w.cols, w.cols);
  }
  std::vector<float> y(static_cast<std::size_t>(tokens * w.rows), NAN);
  kernels.panels[static_cast<std::size_t>(w.dtype)](PanelJob{.panels = packed.panel(0),
                                                             .panel_bytes = packed.panel_bytes(),
                                                             .num_panels = packed.num_panels(),
                                                             .cols = w.cols,
                                                             .num_rows = w.rows,
                                                             .x = rows.rows(),
                                                             .token_rows = nullptr,
                                                             .num_tokens = tokens,
                                                             .bias = nullptr,
                                                             .y = y.data(),
                                                             .y_stride = w.rows});
  return y;
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i]))
        << what << " at " << i << ": " << a[i] << " and " << b[i];
  }
}

// Columns that exercise whole strips, cut strips and single blocks.
std::vector<std::int64_t> cols_of(DType dtype) {
  const int block = dtype_info(dtype).block_size;
  if (block == 256) return {256, 768, 1280};
  if (block == 32) return {32, 96, 576, 1056};
  return {1, 31, 100};
}

TEST(PackedMatrix, GivesBackTheStoredValues) {
  ThreadPool pool(2);
  for (const DType dtype : all_types()) {
    for (const std::int64_t rows : {1, 16, 37}) {
      const std::int64_t cols = cols_of(dtype).back();
      const StoredMatrix w = random_matrix(dtype, rows, cols, 7);
      for (const Isa isa : {Isa::kReference, Isa::kReferenceQ8}) {
        const PackedMatrix packed = PackedMatrix::pack(w.view(), RowOrder{}, isa, pool).value();
        std::vector<float> row(static_cast<std::size_t>(cols));
        for (std::int64_t r = 0; r < rows; ++r) {
          packed.dequantize_row(r, row.data());
          ASSERT_EQ(row, w.row(r)) << name_of(dtype) << " row " << r;
        }
      }
    }
  }
}

TEST(PackedMatrix, KeepsTheBytesOfWholePanels) {
  ThreadPool pool(1);
  for (const DType dtype : kBlockTypes) {
    const StoredMatrix w = random_matrix(dtype, 32, 512, 1);
    const PackedMatrix packed =
        PackedMatrix::pack(w.view(), RowOrder{}, Isa::kReferenceQ8, pool).value();
    EXPECT_EQ(packed.size_bytes(), static_cast<std::int64_t>(w.bytes.size())) << name_of(dtype);
  }
}

TEST(PackedMatrix, RefusesAValueThatIsNoNumberByItsStoredRow) {
  ThreadPool pool(2);
  StoredMatrix w = random_matrix(DType::kQ4_1, 4096, 64, 3);
  const std::uint16_t nan = 0x7E00;
  for (const std::size_t row : {4000u, 33u}) {
    std::memcpy(w.bytes.data() + row * 40 + 22, &nan, 2);  // m of the row's second block
    for (const Isa isa : {Isa::kReference, best_isa()}) {
      const auto packed = PackedMatrix::pack(w.view(), {.interleaved_head_dim = 16}, isa, pool);
      ASSERT_FALSE(packed);
      EXPECT_EQ(packed.error().code(), StatusCode::kDataLoss);
      EXPECT_THAT(packed.error().message(), ::testing::HasSubstr(fmt::format("row {} ", row)));
    }
  }
}

TEST(PackedMatrix, AppliesTheRowOrder) {
  ThreadPool pool(1);
  const StoredMatrix w = random_matrix(DType::kQ8_0, 32, 64, 3);
  const RowOrder order{.interleaved_head_dim = 16};
  for (const Isa isa : {Isa::kReference, Isa::kReferenceQ8}) {
    const PackedMatrix packed = PackedMatrix::pack(w.view(), order, isa, pool).value();
    std::vector<float> row(64);
    for (std::int64_t r = 0; r < 32; ++r) {
      packed.dequantize_row(r, row.data());
      EXPECT_EQ(row, w.row(order.stored_row(r))) << r;
    }
  }
}

TEST(Gemm, ReferenceIsTheProductOfTheDequantisedWeights) {
  for (const DType dtype : all_types()) {
    const std::int64_t rows = 19, tokens = 3;
    const std::int64_t cols = dtype_info(dtype).block_size == 1 ? 5000 : 5120;
    const StoredMatrix w = random_matrix(dtype, rows, cols, 11);
    const std::vector<float> x = random_floats(tokens * cols, 12), bias = random_floats(rows, 13);
    const std::vector<float> y = product(Isa::kReference, w, x, tokens, 2, bias.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::vector<float> row = w.row(r);
      for (std::int64_t t = 0; t < tokens; ++t) {
        double sum = bias[static_cast<std::size_t>(r)], size = 0;
        for (std::int64_t k = 0; k < cols; ++k) {
          const double p =
              double{row[static_cast<std::size_t>(k)]} * x[static_cast<std::size_t>(t * cols + k)];
          sum += p;
          size += std::abs(p);
        }
        ASSERT_NEAR(y[static_cast<std::size_t>(t * rows + r)], sum, 1e-6 * size) << name_of(dtype);
      }
    }
  }
}

// The stated formulas against an independent sum over the stored values.
TEST(Gemm, ReferenceQ8IsTheProductWithQuantisedActivations) {
  for (const DType dtype : kBlockTypes) {
    const std::int64_t rows = 18, cols = 768, tokens = 2;
    const StoredMatrix w = random_matrix(dtype, rows, cols, 21);
    const std::vector<float> x = random_floats(tokens * cols, 22);
    const std::vector<float> y = product(Isa::kReferenceQ8, w, x, tokens);
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<double> quantised(static_cast<std::size_t>(cols));
      for (std::int64_t k = 0; k < cols; k += 32) {
        float max = 0;
        for (std::int64_t i = k; i < k + 32; ++i)
          max = std::max(max, std::abs(x[static_cast<std::size_t>(t * cols + i)]));
        for (std::int64_t i = k; i < k + 32; ++i) {
          quantised[static_cast<std::size_t>(i)] =
              std::nearbyint(x[static_cast<std::size_t>(t * cols + i)] * (127 / max)) *
              double{max} / 127;
        }
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::vector<float> row = w.row(r);
        double sum = 0, size = 0;
        for (std::size_t k = 0; k < row.size(); ++k) {
          sum += row[k] * quantised[k];
          size += std::abs(row[k] * quantised[k]);
        }
        ASSERT_NEAR(y[static_cast<std::size_t>(t * rows + r)], sum, 2e-6 * size) << name_of(dtype);
      }
    }
  }
}

TEST(Gemm, EveryKernelEqualsReferenceQ8BitForBit) {
  for (const NamedKernels& kernels : kernels_to_test()) {
    for (const DType dtype : all_types()) {
      for (const std::int64_t cols : cols_of(dtype)) {
        const std::int64_t rows = cols % 64 == 0 ? 32 : 37;
        const StoredMatrix w = random_matrix(dtype, rows, cols, 31);
        std::vector<std::int64_t> counts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 40};
        if (cols == cols_of(dtype).front()) {
          for (std::int64_t t = 10; t < 40; ++t) counts.push_back(t);
          counts.push_back(300);
        }
        for (const std::int64_t tokens : counts) {
          const std::vector<float> x =
              random_floats(tokens * cols, static_cast<std::uint32_t>(tokens));
          expect_same_bits(product_with(*kernels.table, w, x, tokens),
                           product_with(kReferenceQ8Gemm, w, x, tokens),
                           std::string(kernels.name) + " " + name_of(dtype) + " cols " +
                               std::to_string(cols) + " tokens " + std::to_string(tokens));
        }
      }
    }
  }
}

// Largest codes against largest activations of every sign pattern: an int16 sum that saturated or
// wrapped would show.
TEST(Gemm, ExtremeCodesAndActivationsDoNotOverflow) {
  for (const NamedKernels& kernels : kernels_to_test()) {
    for (const DType dtype : kBlockTypes) {
      for (const unsigned fill : {0x00u, 0xffu, 0x80u, 0x7fu, 0x0fu, 0xf0u}) {
        StoredMatrix w = random_matrix(dtype, 16, 512, 41);
        const std::vector<std::byte> random_bytes = w.bytes;
        for (std::byte& byte : w.bytes) byte = static_cast<std::byte>(fill);
        const auto block_bytes = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
        for (std::size_t block = 0; block < w.bytes.size(); block += block_bytes) {
          const testing::ScaleOffsets at = testing::scale_offsets(dtype);
          for (const int offset : {at.first, at.second}) {
            if (offset < 0) continue;
            const std::size_t from = block + static_cast<std::size_t>(offset);
            std::memcpy(&w.bytes[from], &random_bytes[from], 2);
          }
        }
        for (const int pattern : {0, 1, 2, 3, 4}) {
          const std::int64_t tokens = 6;
          std::vector<float> x(static_cast<std::size_t>(tokens) * 512);
          for (std::size_t i = 0; i < x.size(); ++i) {
            const bool negative[] = {false, true, i % 2 == 1, i % 4 >= 2, i % 32 >= 16};
            x[i] = negative[pattern] ? -1.0f : 1.0f;
          }
          for (const std::int64_t count : {std::int64_t{1}, tokens}) {
            expect_same_bits(product_with(*kernels.table, w, x, count),
                             product_with(kReferenceQ8Gemm, w, x, count),
                             std::string(kernels.name) + " " + name_of(dtype) + " fill " +
                                 std::to_string(fill) + " pattern " + std::to_string(pattern));
          }
        }
      }
    }
  }
}

TEST(Activations, EveryKernelQuantisesAlike) {
  const std::int64_t cols = 32 * 9 + 5;
  std::vector<float> x = random_floats(cols, 51);
  for (int i = 0; i < 32; ++i) {
    const auto at = [&](int block) -> float& {
      return x[static_cast<std::size_t>(32 * block + i)];
    };
    at(1) = 0;
    at(2) = 1e-38f * static_cast<float>(i);
    at(3) = 3e38f * (i % 2 == 0 ? 1.0f : -0.5f);
    at(4) = static_cast<float>(i) - 15.5f;  // ties
    at(5) = i == 7 ? NAN : 1.0f;
    at(6) = i == 9 ? std::numeric_limits<float>::infinity() : 1.0f;
    at(7) = -0.0f;
  }
  Activations expected, actual;
  for (Activations* rows : {&expected, &actual}) {
    rows->reserve(3, 640, false);
    rows->reset(cols);
  }
  expected.set_row(Isa::kReferenceQ8, 2, x.data());
  const std::int64_t blocks = expected.rows().stride;
  EXPECT_EQ(expected.rows().num_blocks, 10);
  EXPECT_EQ(blocks, 11);
  EXPECT_EQ(expected.rows().blocks[2 * blocks + 1].scale, 0);
  EXPECT_TRUE(std::isnan(expected.rows().blocks[2 * blocks + 5].scale));
  EXPECT_TRUE(std::isnan(expected.rows().blocks[2 * blocks + 6].scale));
  for (const NamedKernels& kernels : kernels_to_test()) {
    kernels.table->quantize_row(actual.rows(), 2, x.data(), cols);
    for (std::int64_t b = 2 * blocks; b < 2 * blocks + 10; ++b) {
      const ActivationBlock &e = expected.rows().blocks[b], &a = actual.rows().blocks[b];
      EXPECT_EQ(std::memcmp(a.q, e.q, sizeof(e.q)), 0) << kernels.name << " block " << b;
      EXPECT_EQ(std::bit_cast<std::uint32_t>(a.scale) & 0x7fffffffu,
                std::bit_cast<std::uint32_t>(e.scale) & 0x7fffffffu)
          << b;
      EXPECT_EQ(a.sum, e.sum) << b;
      EXPECT_EQ(std::memcmp(a.half_sums, e.half_sums, 4 + 8 + 4), 0) << kernels.name << " " << b;
      if (!std::isnan(e.scale)) {
        EXPECT_EQ(a.scaled_sum, e.scaled_sum) << b;
      }
    }
  }
}

TEST(Gemm, NonFiniteActivationsShowInEveryOutput) {
  for (const Isa isa : supported_isas()) {
    const StoredMatrix w = random_matrix(DType::kQ5_0, 16, 64, 61);
    std::vector<float> x(64, 1.0f);
    x[40] = NAN;
    for (const float value : product(isa, w, x, 1)) EXPECT_TRUE(std::isnan(value)) << isa_name(isa);
  }
}

TEST(Gemm, ThreadsTasksAndChosenRowsChangeNoBit) {
  const std::int64_t cols = 576, tokens = 7;
  const StoredMatrix a = random_matrix(DType::kQ4_1, 200, cols, 71);
  const StoredMatrix b = random_matrix(DType::kQ8_0, 61, cols, 72);
  const std::vector<float> x = random_floats(tokens * cols, 73), bias = random_floats(200, 74);
  for (const Isa isa : supported_isas()) {
    const std::vector<float> ya = product(isa, a, x, tokens, 1, bias.data());
    const std::vector<float> yb = product(isa, b, x, tokens);
    ThreadPool pool(3);
    const PackedMatrix wa = PackedMatrix::pack(a.view(), RowOrder{}, isa, pool).value();
    const PackedMatrix wb = PackedMatrix::pack(b.view(), RowOrder{}, isa, pool).value();
    Activations rows;
    rows.reserve(tokens, cols, true);
    rows.reset(cols);
    for (std::int64_t t = 0; t < tokens; ++t) rows.set_row(isa, t, x.data() + t * cols);
    const std::int32_t chosen[] = {6, 0, 3};
    std::vector<float> za(3 * 256), zb(3 * 61);
    const GemmTask tasks[] = {{&wa, bias.data(), za.data(), 256}, {&wb, nullptr, zb.data(), 61}};
    EXPECT_EQ(gemm(pool, isa, tasks, rows, 3, chosen), wa.size_bytes() + wb.size_bytes());
    for (std::size_t t = 0; t < 3; ++t) {
      const auto from = static_cast<std::size_t>(chosen[t]);
      for (std::size_t r = 0; r < 200; ++r) EXPECT_EQ(za[t * 256 + r], ya[from * 200 + r]);
      for (std::size_t r = 0; r < 61; ++r) EXPECT_EQ(zb[t * 61 + r], yb[from * 61 + r]);
      for (std::size_t r = 200; r < 256; ++r)
        EXPECT_EQ(za[t * 256 + r], 0) << "wrote past the rows";
    }
  }
}

TEST(Gemm, NoTokensReadNothing) {
  ThreadPool pool(1);
  const StoredMatrix w = random_matrix(DType::kQ4_0, 16, 32, 81);
  const PackedMatrix packed = PackedMatrix::pack(w.view(), RowOrder{}, best_isa(), pool).value();
  Activations rows;
  rows.reserve(1, 32, false);
  rows.reset(32);
  const GemmTask task{.weights = &packed};
  EXPECT_EQ(gemm(pool, best_isa(), {&task, 1}, rows, 0), 0);
}

}  // namespace
}  // namespace dunlin
