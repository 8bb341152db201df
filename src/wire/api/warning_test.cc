#include "wire/api/warning.h"

#include <gtest/gtest.h>

namespace carve::api {
namespace {

TEST(Warning, has_the_same_text_after_reading) {
  for (const std::string text : {"", "node n1 changes", R"(a "name" and a \ )", "\xc3\xa9"})
    EXPECT_EQ(warning_text(warning_value(text)), text);
  EXPECT_EQ(warning_value("a\"b"), R"(299 - "a\"b")");
}

TEST(Warning, cannot_begin_another_header_line) {
  EXPECT_EQ(warning_value("a\r\nSet-Cookie: b\x1b[0m\x7f"), "299 - \"a  Set-Cookie: b [0m \"");
}

TEST(Warning, cuts_off_a_long_text) {
  const std::string longest(max_warning_bytes, 'x');
  EXPECT_EQ(warning_text(warning_value(longest + "y")), longest);
  EXPECT_EQ(warning_text("299 - \"" + std::string(1 << 20, 'x')), longest);
  EXPECT_EQ(warning_text(warning_value(std::string(5000, '"'))), std::string(max_warning_bytes, '"'));
}

TEST(Warning, of_another_form_is_ignored) {
  for (const char* value : {"", "299", "299 - ", "199 - \"a\"", "299 - \"a", "299 - \"a\\", "299 - \"a\\\""})
    EXPECT_EQ(warning_text(value), std::nullopt) << value;
}

}  // namespace
}  // namespace carve::api
