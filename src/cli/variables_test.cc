#include "cli/variables.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace carve::cli {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Variables, are_set_or_taken_from_the_environment) {
  setenv("TAKEN", "from here", 1);
  unsetenv("MISSING");
  const auto out = to_variables({.words = {"A=b=c", "EMPTY=", "TAKEN", "MISSING", "A=last"}, .files = {}});
  ASSERT_TRUE(out);
  EXPECT_THAT(*out, UnorderedElementsAre(Pair("A", "last"), Pair("EMPTY", ""), Pair("TAKEN", "from here")));
}

TEST(Variables, of_carve_and_unusable_names_are_rejected) {
  for (const char* const word :
       {"CUDA_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES", "CARVE_SLICE=x", "=x", "", "A B=x"}) {
    const auto out = to_variables({.words = {word}, .files = {}});
    ASSERT_FALSE(out) << word;
    EXPECT_THAT(out.error(), HasSubstr("--env '")) << word;
  }
  EXPECT_THAT(to_variables({.words = {"CUDA_VISIBLE_DEVICES=0"}, .files = {}}).error(),
              HasSubstr("--device"));
}

TEST(Variables, of_a_file_have_a_line_each) {
  Variables out;
  EXPECT_EQ(add_file_variables("f", "# comment\n\n  A=x y \r\nB=\"q\"#1\n   # another\nC=no line end", out),
            "");
  EXPECT_THAT(out, UnorderedElementsAre(Pair("A", "x y "), Pair("B", "\"q\"#1"), Pair("C", "no line end")));
  EXPECT_EQ(add_file_variables("f", "A=1\nCUDA_VISIBLE_DEVICES=0\n", out).substr(0, 33),
            "f, line 2: 'CUDA_VISIBLE_DEVICES'");
  EXPECT_THAT(add_file_variables("f", std::string("A=\0b\n", 5), out), HasSubstr("f, line 1: 'A'"));
  EXPECT_THAT(add_file_variables("f", "\x1b[31m x=1\n", out), HasSubstr("spaces"));
  EXPECT_EQ(add_file_variables("f", "\n\n", out), "");
}

TEST(Variables, of_a_missing_file_are_an_error) {
  EXPECT_THAT(to_variables({.words = {}, .files = {"/no/such/file"}}).error(),
              HasSubstr("--env-file /no/such/file: No such file"));
}

}  // namespace
}  // namespace carve::cli
