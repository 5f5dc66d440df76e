#include "terminal/key_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dunlin::terminal {
namespace {

bool operator==(const Key& a, const Key& b) { return a.kind == b.kind && a.text == b.text; }

std::vector<Key> joined(std::vector<Key> keys) {
  std::vector<Key> out;
  for (Key& key : keys) {
    if (key.kind == KeyKind::kText && !out.empty() && out.back().kind == KeyKind::kText) {
      out.back().text += key.text;
    } else {
      out.push_back(std::move(key));
    }
  }
  return out;
}

// The keys of `bytes`, which must be the same however the bytes are cut.
std::vector<Key> decode(const std::string& bytes) {
  const std::vector<Key> whole = joined(KeyDecoder().push(bytes));
  KeyDecoder decoder;
  std::vector<Key> cut;
  for (const char byte : bytes) {
    for (Key& key : decoder.push({&byte, 1})) cut.push_back(std::move(key));
  }
  cut = joined(std::move(cut));
  EXPECT_EQ(cut.size(), whole.size()) << bytes;
  for (std::size_t i = 0; i < std::min(cut.size(), whole.size()); ++i)
    EXPECT_TRUE(cut[i] == whole[i]) << bytes << " key " << i;
  return whole;
}

void expect_keys(const std::string& bytes, const std::vector<Key>& wanted) {
  const std::vector<Key> keys = decode(bytes);
  ASSERT_EQ(keys.size(), wanted.size()) << bytes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(keys[i].kind, wanted[i].kind) << bytes << " key " << i;
    EXPECT_EQ(keys[i].text, wanted[i].text) << bytes << " key " << i;
  }
}

TEST(KeyDecoder, reads_text) {
  expect_keys("héllo 日本", {{KeyKind::kText, "héllo 日本"}});
  expect_keys("a\tb", {{KeyKind::kText, "a\tb"}});
}

TEST(KeyDecoder, tells_enter_from_a_new_line) {
  expect_keys("\r", {{KeyKind::kEnter, ""}});
  expect_keys("\n", {{KeyKind::kNewLine, ""}});
  expect_keys("\x1b\r", {{KeyKind::kNewLine, ""}});
}

TEST(KeyDecoder, knows_the_keys_of_common_terminals) {
  expect_keys(
      "\x1b[A\x1bOB\x1b[C\x1b[D",
      {{KeyKind::kUp, ""}, {KeyKind::kDown, ""}, {KeyKind::kRight, ""}, {KeyKind::kLeft, ""}});
  expect_keys("\x1b[H\x1b[1~\x1bOF\x1b[4~\x1b[3~", {{KeyKind::kHome, ""},
                                                    {KeyKind::kHome, ""},
                                                    {KeyKind::kEnd, ""},
                                                    {KeyKind::kEnd, ""},
                                                    {KeyKind::kDelete, ""}});
  expect_keys(
      "\x1b[1;5D\x1b"
      "f\x1b\x7f",
      {{KeyKind::kWordLeft, ""}, {KeyKind::kWordRight, ""}, {KeyKind::kEraseWordLeft, ""}});
  expect_keys("\x03\x04\x1a",
              {{KeyKind::kInterrupt, ""}, {KeyKind::kEndOfInput, ""}, {KeyKind::kSuspend, ""}});
}

TEST(KeyDecoder, passes_over_what_it_does_not_know) {
  expect_keys("a\x1b[38;5;1mb\x1b[<0;1;1Mc\x1bzd\x1eq", {{KeyKind::kText, "abcdq"}});
  expect_keys("a\x1b[" + std::string(100, '1') + "b",
              {{KeyKind::kText, "a" + std::string(70, '1') + "b"}});
  expect_keys(
      "\x1b\xF0\x9F\x91\xA9"
      "a",
      {{KeyKind::kText, "a"}});  // Alt and a character of four bytes
}

TEST(KeyDecoder, gives_a_paste_in_one_piece) {
  expect_keys("\x1b[200~one\rtwo\r\nthree\x1b[31m\x1b[201~x",
              {{KeyKind::kPaste, "one\ntwo\nthree[31m"}, {KeyKind::kText, "x"}});
}

TEST(KeyDecoder, ends_an_endless_paste_at_control_c) {
  expect_keys("\x1b[200~one\x03", {{KeyKind::kInterrupt, ""}});
}

TEST(KeyDecoder, bounds_a_paste) {
  KeyDecoder decoder;
  decoder.push("\x1b[200~");
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(decoder.push(std::string(1 << 16, 'x')).empty());
  const auto keys = decoder.push("\x1b[201~");
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].text.size(), KeyDecoder::kMaxPasteBytes);
}

TEST(KeyDecoder, repairs_broken_characters) {
  expect_keys(
      "a\xff"
      "b",
      {{KeyKind::kText, "a\uFFFDb"}});
  expect_keys("\xe6\x97\r", {{KeyKind::kText, "\uFFFD"}, {KeyKind::kEnter, ""}});
}

TEST(KeyDecoder, forgets_a_lone_escape) {
  KeyDecoder decoder;
  EXPECT_FALSE(decoder.pending());
  EXPECT_TRUE(decoder.push("\x1b").empty());
  EXPECT_TRUE(decoder.pending());
  decoder.abandon();
  EXPECT_FALSE(decoder.pending());
  EXPECT_TRUE(decoder.push("\xc3").empty());
  EXPECT_FALSE(decoder.pending());  // half a character waits as long as it takes
  EXPECT_EQ(decoder.push("\xbc").size(), 1u);
  const auto keys = decoder.push("b");
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].kind, KeyKind::kText);
}

}  // namespace
}  // namespace dunlin::terminal
