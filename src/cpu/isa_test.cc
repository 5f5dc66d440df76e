#include "cpu/isa.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dunlin {
namespace {

TEST(Isa, EverySupportedNameParsesToItself) {
  for (const Isa isa : supported_isas()) {
    const Result<Isa> parsed = parse_isa(isa_name(isa));
    ASSERT_TRUE(parsed.has_value()) << isa_name(isa);
    EXPECT_EQ(*parsed, isa);
  }
}

TEST(Isa, ScalarPathsRunEverywhereAndAutoIsTheBest) {
  const auto isas = supported_isas();
  for (const Isa isa : {Isa::kReference, Isa::kReferenceQ8, Isa::kPortable}) {
    EXPECT_NE(std::ranges::find(isas, isa), isas.end());
  }
  EXPECT_EQ(isas.front(), Isa::kReference);
  EXPECT_EQ(*parse_isa("auto"), best_isa());
  EXPECT_EQ(best_isa(), isas.back());
}

TEST(Isa, UnknownOrMissingSetsAreRefusedWithTheChoices) {
  const Result<Isa> unknown = parse_isa("mmx");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(unknown.error().message().find("reference-q8"), std::string::npos);
  // No machine has both.
  const Result<Isa> missing = parse_isa(best_isa() == Isa::kNeon ? "avx2" : "neon");
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message().find("not available"), std::string::npos);
}

}  // namespace
}  // namespace dunlin
