#include "formats/gguf_dtypes.h"

#include <array>

#include "base/check.h"

namespace dunlin {
namespace {

struct Row {
  std::uint32_t number;
  std::string_view name;
  std::optional<DType> dtype;  // nullopt: known, and not supported
};

// The numbers left out were given up by GGUF.
constexpr auto kRows = std::to_array<Row>({
    {0, "F32", DType::kF32},        {1, "F16", DType::kF16},       {2, "Q4_0", DType::kQ4_0},
    {3, "Q4_1", DType::kQ4_1},      {6, "Q5_0", DType::kQ5_0},     {7, "Q5_1", DType::kQ5_1},
    {8, "Q8_0", DType::kQ8_0},      {9, "Q8_1", std::nullopt},     {10, "Q2_K", DType::kQ2_K},
    {11, "Q3_K", DType::kQ3_K},     {12, "Q4_K", DType::kQ4_K},    {13, "Q5_K", DType::kQ5_K},
    {14, "Q6_K", DType::kQ6_K},     {15, "Q8_K", std::nullopt},    {16, "IQ2_XXS", std::nullopt},
    {17, "IQ2_XS", std::nullopt},   {18, "IQ3_XXS", std::nullopt}, {19, "IQ1_S", std::nullopt},
    {20, "IQ4_NL", DType::kIQ4_NL}, {21, "IQ3_S", std::nullopt},   {22, "IQ2_S", std::nullopt},
    {23, "IQ4_XS", DType::kIQ4_XS}, {24, "I8", DType::kI8},        {25, "I16", DType::kI16},
    {26, "I32", DType::kI32},       {27, "I64", DType::kI64},      {28, "F64", DType::kF64},
    {29, "IQ1_M", std::nullopt},    {30, "BF16", DType::kBF16},    {34, "TQ1_0", std::nullopt},
    {35, "TQ2_0", std::nullopt},    {39, "MXFP4", std::nullopt},
});

}  // namespace

std::optional<DType> dtype_of_gguf_number(std::uint32_t number) {
  for (const Row& row : kRows) {
    if (row.number == number) return row.dtype;
  }
  return std::nullopt;
}

std::string_view gguf_number_name(std::uint32_t number) {
  for (const Row& row : kRows) {
    if (row.number == number) return row.name;
  }
  return "";
}

std::uint32_t gguf_number_of(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row.number;
  }
  DUNLIN_CHECK(false, "a type that GGUF has no number for");
  return 0;
}

}  // namespace dunlin
