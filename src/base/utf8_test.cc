#include "base/utf8.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

TEST(Utf8Test, every_scalar_value_survives_encoding_and_decoding) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const Utf8Char decoded = decode_utf8(text, 0);
    ASSERT_EQ(decoded.state, Utf8State::kValid) << std::hex << static_cast<unsigned>(c);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(static_cast<std::size_t>(decoded.num_bytes), text.size());
    ASSERT_EQ(utf8_length(static_cast<unsigned char>(text[0])), decoded.num_bytes);
    ASSERT_EQ(find_broken_utf8(text), text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Char part = decode_utf8(std::string_view(text).substr(0, cut), 0);
      ASSERT_EQ(part.state, Utf8State::kIncomplete);
      ASSERT_EQ(static_cast<std::size_t>(part.num_bytes), cut);
    }
  }
}

TEST(Utf8Test, surrogates_overlong_forms_and_too_large_values_are_broken) {
  for (std::string_view text :
       {"\xED\xA0\x80", "\xED\xBF\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80",
        "\xBF", "\xFE", "\xFF"}) {
    EXPECT_EQ(decode_utf8(text, 0).state, Utf8State::kBroken) << text;
    EXPECT_EQ(find_broken_utf8(text), 0u);
  }
}

// Expected values are Python's bytes.decode("utf-8", "replace").
TEST(Utf8Test, repair_puts_one_replacement_for_each_maximal_subpart) {
  EXPECT_EQ(repair_utf8("plain"), "plain");
  EXPECT_EQ(repair_utf8(""), "");
  EXPECT_EQ(repair_utf8("a\xF0\x9F\x98z"), "a\uFFFDz");
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repair_utf8("\xE2\x82\xE2\x82\xAC\xFF"), "\uFFFD\u20AC\uFFFD");
  EXPECT_EQ(repair_utf8("12345678\x80"
                        "12345678"),
            "12345678\uFFFD"
            "12345678");
}

TEST(Utf8Test, finds_the_first_broken_byte_behind_long_ascii) {
  std::string text(100, 'x');
  EXPECT_EQ(find_broken_utf8(text), 100u);
  EXPECT_TRUE(is_ascii(text));
  for (std::size_t pos = 0; pos < 100; ++pos) {
    std::string bad = text;
    bad[pos] = '\xFF';
    EXPECT_EQ(find_broken_utf8(bad), pos);
    EXPECT_FALSE(is_ascii(bad));
  }
}

}  // namespace
}  // namespace dunlin
