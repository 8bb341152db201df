#include "sim/image/linker.h"

#include <gtest/gtest.h>

#include "sim/image/image.h"

namespace carve::sim {
namespace {

using namespace std::string_view_literals;

TEST(Linker, joins_modules_up_to_their_first_zero_byte) {
  Linker linker;
  EXPECT_EQ(linker.text(), "");
  linker.add(".version 7.0\0 after the end"sv);
  linker.add("// not terminated"sv);
  linker.add(""sv);
  EXPECT_EQ(linker.text(), ".version 7.0\n// not terminated\n\n");
}

TEST(Linker, returns_a_text_that_is_one_module) {
  Linker linker;
  linker.add(".version 7.0\n.target sm_60\n.entry first() { ret; }"sv);
  linker.add(".entry second() { ret; }"sv);
  Image image;
  ASSERT_EQ(parse_ptx(linker.text(), &image), ImageError::none);
  ASSERT_EQ(image.kernels.size(), 2u);
  EXPECT_EQ(image.kernels[0].name, "first");
  EXPECT_EQ(image.kernels[1].name, "second");
}

}  // namespace
}  // namespace carve::sim
