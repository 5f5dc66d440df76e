#include "kernels/float_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/activation.h"
#include "kernels/float_tables_for_tests.h"
#include "kernels/norm.h"
#include "kernels/softmax.h"

namespace dunlin {
namespace {

constexpr int kOddSizes[] = {1, 7, 8, 9, 16, 31, 33, 64, 100, 576, 897};
constexpr float kCanary = 12345.0f;

std::vector<float> random_row(std::uint64_t seed, std::size_t n, double range) {
  std::vector<float> row(n);
  for (std::size_t i = 0; i < n; ++i)
    row[i] = static_cast<float>((2 * uniform_at(seed, 0, i) - 1) * range);
  return row;
}

void expect_close(const std::vector<float>& got, const std::vector<float>& want, double relative,
                  double absolute) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], relative * std::abs(want[i]) + absolute) << "element " << i;
}

class FloatTable : public testing::TestWithParam<NamedTable> {
 protected:
  const FloatKernels& fast() const { return *GetParam().table; }
  const FloatKernels& reference() const { return reference_float_kernels(); }
};
INSTANTIATE_TEST_SUITE_P(Isa, FloatTable, testing::ValuesIn(fast_tables()),
                         [](const auto& param) { return param.param.name; });

TEST_P(FloatTable, NormsRowsOfOddLengthsInPlaceAndNotBeyondTheirEnd) {
  for (int n : kOddSizes) {
    const auto size = static_cast<std::size_t>(n);
    for (bool weighted : {false, true}) {
      const std::vector<float> x = random_row(1, size, 5), weight = random_row(2, size, 2);
      std::vector<float> want(size), got = x;
      got.push_back(kCanary);
      const float* w = weighted ? weight.data() : nullptr;
      reference().rms_norm(x.data(), w, 1e-5f, n, want.data());
      fast().rms_norm(got.data(), w, 1e-5f, n, got.data());
      EXPECT_EQ(got.back(), kCanary);
      got.pop_back();
      expect_close(got, want, 1e-6, 0);
    }
  }
}

TEST_P(FloatTable, GatesEqualTheReferenceUpToTheTailsOfTheFunctions) {
  for (int n : kOddSizes) {
    const auto size = static_cast<std::size_t>(n);
    for (double range : {1.0, 10.0, 200.0}) {
      const std::vector<float> gate = random_row(3, size, range), up = random_row(4, size, 8);
      for (auto member : {&FloatKernels::silu_mul, &FloatKernels::gelu_tanh_mul,
                          &FloatKernels::gelu_erf_mul, &FloatKernels::clamped_swiglu}) {
        std::vector<float> want(size), got = gate;
        got.push_back(kCanary);
        (reference().*member)(gate.data(), up.data(), n, want.data());
        (fast().*member)(got.data(), up.data(), n, got.data());
        EXPECT_EQ(got.back(), kCanary);
        got.pop_back();
        expect_close(got, want, 4e-6, 1e-8);
      }
    }
  }
}

TEST_P(FloatTable, SoftcapEqualsTheReference) {
  for (int n : kOddSizes) {
    const std::vector<float> x = random_row(5, static_cast<std::size_t>(n), 150);
    std::vector<float> want = x, got = x;
    reference().softcap(30, n, want.data());
    fast().softcap(30, n, got.data());
    expect_close(got, want, 1e-6, 1e-5);
  }
}

TEST_P(FloatTable, ExponentialIsExactToAFewUnitsInTheLastPlace) {
  std::vector<float> x;
  for (int i = 0; i <= 87000; ++i) x.push_back(static_cast<float>(-i * 0.001));
  std::vector<float> want(x.size()), got(x.size());
  const auto n = static_cast<std::int64_t>(x.size());
  reference().exp_below(x.data(), 0, n, want.data());
  fast().exp_below(x.data(), 0, n, got.data());
  expect_close(got, want, 3e-7, 0);
  EXPECT_EQ(got[0], 1.0f);
}

TEST_P(FloatTable, ExponentialOfVerySmallNumbersIsZero) {
  const std::vector<float> x = {-std::numeric_limits<float>::infinity(), -1e30f, -200.0f, -88.0f};
  std::vector<float> got(x.size(), kCanary);
  fast().exp_below(x.data(), 0, 4, got.data());
  EXPECT_EQ(got, std::vector<float>(4, 0.0f));
}

TEST_P(FloatTable, ClampedGatesKeepANaN) {
  const float bad[] = {NAN, 1.0f}, good[] = {1.0f, NAN};
  float y[2];
  fast().clamped_swiglu(bad, good, 2, y);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
}

TEST(Gated, KnowsItsFunctionsByName) {
  const float gate = 1.0f, up = 2.0f;
  float y = 0;
  for (Isa isa : supported_isas()) {
    gated(isa, GateFunction::kSilu, &gate, &up, 1, &y);
    EXPECT_NEAR(y, 2 * 0.7310585786, 1e-6) << isa_name(isa);
    gated(isa, GateFunction::kGeluTanh, &gate, &up, 1, &y);
    EXPECT_NEAR(y, 2 * 0.8411919906, 1e-6) << isa_name(isa);
    gated(isa, GateFunction::kGeluErf, &gate, &up, 1, &y);
    EXPECT_NEAR(y, 2 * 0.8413447461, 1e-6) << isa_name(isa);
    gated(isa, GateFunction::kClampedSwiglu, &gate, &up, 1, &y);
    EXPECT_NEAR(y, 3 * 0.8457957659, 1e-6) << isa_name(isa);
  }
}

TEST(Softmax, SumsToOneAndKeepsRatios) {
  for (Isa isa : supported_isas()) {
    std::vector<float> x = {1, 2, 3, -std::numeric_limits<float>::infinity()};
    softmax(isa, 4, x.data());
    EXPECT_NEAR(x[0] + x[1] + x[2], 1, 1e-6);
    EXPECT_NEAR(x[2] / x[1], std::exp(1.0), 1e-5);
    EXPECT_EQ(x[3], 0.0f);
  }
}

TEST(LogSumExp, OfAVocabularyNeitherOverflowsNorLosesSmallTerms) {
  const std::vector<float> x(100000, 500.0f);
  for (Isa isa : supported_isas()) {
    EXPECT_NEAR(log_sum_exp(isa, x.data(), static_cast<std::int64_t>(x.size())),
                500 + std::log(100000.0), 1e-9);
  }
}

}  // namespace
}  // namespace dunlin
