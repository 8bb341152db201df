#include "core/escaped.h"

#include <gtest/gtest.h>

#include <random>

namespace carve {
namespace {

TEST(Escaped, keeps_text_and_replaces_characters_that_could_forge_a_line) {
  EXPECT_EQ(escaped("train.py --näme 数据 €"), "train.py --näme 数据 €");
  EXPECT_EQ(escaped("a\nb\r\x1b]0;x\a\x7f"), "a\\x0ab\\x0d\\x1b]0;x\\x07\\x7f");
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escaped("\u009b31m"), "\\xc2\\x9b31m") << "a C1 control character";
  EXPECT_EQ(escaped("a\u202eb\u2028"), "a\\xe2\\x80\\xaeb\\xe2\\x80\\xa8");
  EXPECT_EQ(escaped("a\tb\nc", "\t\n"), "a\tb\nc");
}

TEST(Escaped, replaces_bytes_that_are_not_utf8) {
  EXPECT_EQ(escaped("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(escaped("a\xc3"), "a\\xc3") << "cut";
  EXPECT_EQ(escaped("\xc0\x8a"), "\\xc0\\x8a") << "an overlong encoding of a line end";
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(escaped("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(Escaped, always_returns_one_line) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text) c = static_cast<char>(random());
    const std::string line = escaped(text);
    for (const char c : line) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    EXPECT_EQ(escaped(line), line) << "escaping the result again changes nothing";
  }
}

}  // namespace
}  // namespace carve
