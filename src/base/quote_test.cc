#include "base/quote.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

TEST(QuoteForMessage, KeepsTheMessageOnOneLine) {
  EXPECT_EQ(quote_for_message("a\nb'\\\xFF\xC3\xA4"), "'a\\x0ab\\x27\\x5c\\xff\xC3\xA4'");
}

TEST(QuoteForMessage, CutsLongNames) {
  EXPECT_EQ(quote_for_message(std::string(200, 'x')), "'" + std::string(100, 'x') + "'...");
}

}  // namespace
}  // namespace dunlin
