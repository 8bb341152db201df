#include "core/label.h"

#include <gtest/gtest.h>

namespace carve {
namespace {

TEST(LabelChange, is_parsed_as_a_value_or_a_removal) {
  EXPECT_EQ(parse_label_change("a=b=c")->second, "b=c");
  EXPECT_EQ(parse_label_change("a=")->second, "");
  EXPECT_EQ(parse_label_change("a-")->second, std::nullopt);
  EXPECT_EQ(parse_label_change("a-")->first, "a");
  EXPECT_EQ(parse_label_change("a-=b-")->first, "a-");
  for (const char* word : {"", "a", "=b", "-", "a\x01=b", "\xff=b"})
    EXPECT_FALSE(parse_label_change(word)) << word;
  EXPECT_FALSE(parse_label_change(std::string(600, 'x') + "=y"));
}

}  // namespace
}  // namespace carve
