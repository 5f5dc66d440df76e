#include "base/base64.h"

#include <utility>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

// The RFC's own examples, and a byte that needs the last digits.
TEST(Base64, WritesTheExamplesOfTheRfc) {
  for (const auto& [text, want] :
       std::initializer_list<std::pair<std::string, std::string>>{{"", ""},
                                                                  {"f", "Zg=="},
                                                                  {"fo", "Zm8="},
                                                                  {"foo", "Zm9v"},
                                                                  {"foob", "Zm9vYg=="},
                                                                  {"fooba", "Zm9vYmE="},
                                                                  {"foobar", "Zm9vYmFy"},
                                                                  {"\xff\xfe\xfb", "//77"}}) {
    EXPECT_EQ(base64(std::as_bytes(std::span(text))), want);
  }
}

}  // namespace
}  // namespace dunlin
