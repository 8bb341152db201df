#include "sim/image/kernel_rules.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace carve::sim {
namespace {

TEST(Rules, consist_of_an_expression_and_a_duration_with_an_optional_argument) {
  const struct {
    const char* line;
    bool good;
    int argument;
    double ns;
  } cases[] = {
      {"gemm.* 20us", true, -1, 20e3},
      {"  spin   arg0 * 1ns", true, 0, 1},
      {"x arg12 * 2.5ms", true, 12, 2.5e6},
      {"x 1s", true, -1, 1e9},
      {"# a comment 1s", false, 0, 0},
      {"", false, 0, 0},
      {"x 20", false, 0, 0},
      {"x arg * 1ns", false, 0, 0},
      {"x argz * 1ns", false, 0, 0},
      {"x arg0 + 1ns", false, 0, 0},
      {"x -1ns", false, 0, 0},
      {"x 1e30s", false, 0, 0},
  };
  for (const auto& c : cases) {
    Rule rule;
    std::string expression;
    ASSERT_EQ(parse_rule(c.line, &expression, &rule), c.good) << c.line;
    if (!c.good) continue;
    EXPECT_EQ(rule.argument, c.argument) << c.line;
    EXPECT_DOUBLE_EQ(rule.each_ns, c.ns) << c.line;
  }
}

TEST(Rules, apply_if_they_are_the_first_to_match_the_whole_name) {
  char directory[] = "/tmp/carve-rules.XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/kernels.rules";
  FILE* f = std::fopen(path.c_str(), "w");
  std::fputs("# comment\nbroken ((( 1ns\nscale.* 5us\nscale_big 9us\na|b 1us\n", f);
  std::fclose(f);
  Rule rule;
  ASSERT_TRUE(find_rule(directory, "scale_big", &rule));
  EXPECT_DOUBLE_EQ(rule.each_ns, 5e3);
  EXPECT_FALSE(find_rule(directory, "upscale", &rule));
  EXPECT_TRUE(find_rule(directory, "b", &rule));
  EXPECT_FALSE(find_rule(directory, "ab", &rule));
  unlink(path.c_str());
  rmdir(directory);
}

}  // namespace
}  // namespace carve::sim
