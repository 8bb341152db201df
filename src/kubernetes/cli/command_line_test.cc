#include "kubernetes/cli/command_line.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::cli {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string> verbs{"help", "nodes", "devices", "set"};

TEST(CommandLine, accepts_the_verb_in_any_position) {
  EXPECT_THAT(*arranged({"nodes", "-o", "json"}, verbs), ElementsAre("nodes", "-o", "json"));
  EXPECT_THAT(*arranged({"-n", "set", "--as=x", "-w", "nodes", "a"}, verbs),
              ElementsAre("nodes", "-n", "set", "--as=x", "-w", "a"));
  EXPECT_THAT(*arranged({"help", "nodes"}, verbs), ElementsAre("nodes", "--help"));
  EXPECT_THAT(*arranged({"help"}, verbs), ElementsAre("--help"));
  EXPECT_THAT(*arranged({"--help"}, verbs), ElementsAre("--help"));
  EXPECT_TRUE(arranged({}, verbs)->empty());
}

TEST(CommandLine, suggests_a_verb_for_a_mistyped_one) {
  EXPECT_EQ(arranged({"nods"}, verbs).error(), "unknown command 'nods'; did you mean 'nodes'?");
  EXPECT_EQ(arranged({"help", "nods"}, verbs).error(), "unknown command 'nods'; did you mean 'nodes'?");
  EXPECT_EQ(arranged({"frobnicate"}, verbs).error(), "unknown command 'frobnicate'");
}

TEST(CommandLine, completions_end_with_kubectls_directive) {
  EXPECT_EQ(completions(verbs, "de"), "devices\n:4\n");
  EXPECT_EQ(completions(verbs, "x"), ":4\n");
}

}  // namespace
}  // namespace carve::kubernetes::cli
