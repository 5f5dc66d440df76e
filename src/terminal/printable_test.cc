#include "terminal/printable.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace dunlin::terminal {
namespace {

using namespace std::string_view_literals;

TEST(Printable, shows_control_characters_as_pictures) {
  EXPECT_EQ(printable("a\x1b[31mred\x07"), "a␛[31mred␇");
  EXPECT_EQ(printable("\0\x08\x7f"sv), "␀␈␡");
}

TEST(Printable, takes_c1_controls_for_what_a_terminal_may_obey) {
  EXPECT_EQ(printable("\u009b31m"), "\uFFFD31m");
  EXPECT_EQ(printable("\u0085"), "\uFFFD");
  EXPECT_EQ(printable("\u00a0"), "\u00a0");
}

TEST(Printable, keeps_lines_tabs_and_letters) {
  EXPECT_EQ(printable("a\r\n\tb é 日 👋\n"), "a\n\tb é 日 👋\n");
}

TEST(Printable, repairs_what_is_not_utf8) {
  EXPECT_EQ(printable("a\xff\xe6\x97"), "a\uFFFD\uFFFD");
}

// No byte and no pair of bytes gets a control character through.
TEST(Printable, leaves_no_control_byte) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const std::string shown = printable(text);
      for (const char c : shown) {
        const auto byte = static_cast<unsigned char>(c);
        EXPECT_TRUE((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t') << first << second;
      }
      if (shown.size() == 2 && static_cast<unsigned char>(shown[0]) == 0xC2) {
        EXPECT_GE(static_cast<unsigned char>(shown[1]), 0xA0);
      }
    }
  }
}

TEST(TypedText, has_line_feeds_for_every_line_end) {
  EXPECT_EQ(typed_text("a\rb\r\nc\nd\n\re"), "a\nb\nc\nd\n\ne");
}

TEST(TypedText, drops_controls_and_repairs) {
  EXPECT_EQ(typed_text("a\x1b[31m\0\x07\tb\u009bz"sv), "a[31m\tbz");
  EXPECT_EQ(typed_text("\xff"), "\uFFFD");
  EXPECT_EQ(typed_text("\u009b"), "");
}

}  // namespace
}  // namespace dunlin::terminal
