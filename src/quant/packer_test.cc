// Many matrices packed in one go: each as it is packed alone, whatever the borders of chunks.
#include "quant/packer.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/dequantize.h"

namespace dunlin {
namespace {

struct Stored {
  DType dtype;
  std::int64_t rows, cols;
  RowOrder order{};
  std::vector<std::byte> bytes{};

  TensorView view() const { return {dtype, 2, {rows, cols, 1, 1}, bytes.data()}; }
  std::int64_t stride() const { return row_bytes(dtype, cols); }
};

// Any bits that are finite numbers.
Stored make_stored(DType dtype, std::int64_t rows, std::int64_t cols, RowOrder order = {}) {
  Stored stored{dtype, rows, cols, order};
  stored.bytes.resize(static_cast<std::size_t>(rows * stored.stride()));
  std::mt19937_64 random(static_cast<std::uint64_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::byte* begin = stored.bytes.data() + row * stored.stride();
    do {
      std::generate_n(begin, stored.stride(), [&] { return static_cast<std::byte>(random()); });
    } while (!all_finite(dtype, begin, cols));
  }
  return stored;
}

// Small and large, with padded panels, and one that spans several chunks; every format.
std::vector<Stored> make_model() {
  std::vector<Stored> model = {make_stored(DType::kQ4_1, 64, 576, {.interleaved_head_dim = 64}),
                               make_stored(DType::kF16, 33, 19), make_stored(DType::kBF16, 16, 40),
                               make_stored(DType::kF32, 17, 9),
                               make_stored(DType::kQ8_0, 9001, 512)};
  int rows = 1;
  for (const DType dtype :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K,
        DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS}) {
    model.push_back(make_stored(dtype, rows += 3, 512));
  }
  return model;
}

void expect_equal(const PackedMatrix& packed, const Stored& stored) {
  ASSERT_EQ(packed.rows(), stored.rows);
  std::vector<float> wanted(static_cast<std::size_t>(stored.cols)), got(wanted.size());
  for (std::int64_t row = 0; row < stored.rows; ++row) {
    dequantize(stored.dtype, stored.bytes.data() + stored.order.stored_row(row) * stored.stride(),
               wanted.data(), stored.cols);
    packed.dequantize_row(row, got.data());
    ASSERT_EQ(got, wanted) << dtype_info(stored.dtype).name << " row " << row;
  }
}

TEST(Packer, PacksEveryRowOfEveryMatrix) {
  const std::vector<Stored> model = make_model();
  for (const Isa isa : {Isa::kReference, Isa::kPortable}) {
    for (const int num_threads : {1, 3}) {
      ThreadPool pool(num_threads);
      std::vector<PackedMatrix> packed(model.size());
      std::vector<std::atomic<int>> num_told(model.size());
      Packer packer(isa);
      for (std::size_t i = 0; i < model.size(); ++i) {
        packer.add(model[i].view(), model[i].order, packed[i]);
      }
      packer.run(pool, [&](std::size_t idx) { ++num_told[idx]; });
      for (std::size_t i = 0; i < model.size(); ++i) {
        EXPECT_TRUE(packer.outcome(i));
        EXPECT_EQ(num_told[i], 1);
        expect_equal(packed[i], model[i]);
      }
    }
  }
}

// The matrices share a block of memory: it stays as long as one of them.
TEST(Packer, MatricesOutliveEachOther) {
  const Stored small = make_stored(DType::kQ8_0, 40, 64);
  ThreadPool pool(1);
  PackedMatrix survivor;
  {
    PackedMatrix gone;
    Packer packer(Isa::kPortable);
    packer.add(small.view(), {}, gone);
    packer.add(small.view(), {}, survivor);
    packer.run(pool, [](std::size_t) {});
  }
  expect_equal(survivor, small);
}

// In every format: the last block of a row holds what only a broken file does.
TEST(Packer, RefusesValuesThatAreNoFiniteNumbers) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
        DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
        DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS}) {
    const Stored good = make_stored(dtype, 40, 256);
    Stored bad = good;
    const std::int64_t block = dtype_info(dtype).block_bytes;
    std::fill_n(bad.bytes.data() + 38 * bad.stride() - block, block, std::byte{0xFF});
    for (const Isa isa : {Isa::kReference, Isa::kPortable}) {
      ThreadPool pool(2);
      PackedMatrix first, second, third;
      Packer packer(isa);
      packer.add(good.view(), {}, first);
      packer.add(bad.view(), {}, second);
      packer.add(good.view(), {}, third);
      packer.run(pool, [](std::size_t) {});
      EXPECT_TRUE(packer.outcome(0));
      EXPECT_TRUE(packer.outcome(2));
      ASSERT_FALSE(packer.outcome(1)) << dtype_info(dtype).name;
      EXPECT_THAT(packer.outcome(1).error().message(), testing::HasSubstr("row 37 "));
    }
  }
}

}  // namespace
}  // namespace dunlin
