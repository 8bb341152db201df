#include "sim/image/image.h"

#include <gtest/gtest.h>

namespace carve::sim {
namespace {

Image parsed(const std::string& text) {
  Image image;
  EXPECT_EQ(parse_ptx(text, &image), ImageError::none) << text;
  return image;
}

const std::string ptx_head = ".version 7.0\n.target sm_60, debug\n.address_size 64\n";

TEST(Ptx, lists_a_kernels_name_and_the_offsets_of_its_parameters) {
  const Image i = parsed(ptx_head + R"(
    // a comment with .entry wrong( in it
    .visible .entry add_f32(.param .u64 a, .param .f32 b, .param .align 16 .b8 c[24],
                            .param .u64 .ptr .global .align 4 d)
    { ret; })");
  EXPECT_EQ(i.target, 60u);
  ASSERT_EQ(i.kernels.size(), 1u);
  const KernelImage& k = i.kernels[0];
  EXPECT_EQ(k.name, "add_f32");
  const std::pair<uint32_t, uint32_t> expected[] = {{0, 8}, {8, 4}, {16, 24}, {40, 8}};
  ASSERT_EQ(k.parameters.size(), 4u);
  for (int n = 0; n < 4; ++n)
    EXPECT_EQ((std::pair{k.parameters[n].offset, k.parameters[n].bytes}), expected[n]) << n;
  EXPECT_EQ(k.parameter_bytes, 48u);
}

TEST(Ptx, bodies_are_skipped_except_for_their_shared_memory) {
  const Image i = parsed(ptx_head + R"(
    .entry one() .maxntid 32, 4, 1 { .shared .align 4 .f32 tile[256]; { bra x; } x: ret; }
    .func (.reg .u32 r) helper(.reg .u32 a) { .reg .u32 t; ret; }
    .entry two { ret; })");
  ASSERT_EQ(i.kernels.size(), 2u);
  EXPECT_EQ(i.kernels[0].static_shared, 1024u);
  EXPECT_EQ(i.kernels[0].max_threads, 128u);
  EXPECT_EQ(i.kernels[1].name, "two");
  EXPECT_EQ(i.kernels[1].max_threads, 1024u);
}

TEST(Ptx, lists_global_variables_with_their_size) {
  const Image i = parsed(ptx_head + R"(
    .global .align 8 .u64 counters[4] = {1, 2, 3, 4};
    .visible .const .f32 scale;
    .global .texref image;
    .entry k() { ret; })");
  ASSERT_EQ(i.globals.size(), 3u);
  EXPECT_EQ(i.globals[0].name, "counters");
  EXPECT_EQ(i.globals[0].bytes, 32u);
  EXPECT_EQ(i.globals[1].bytes, 4u);
  EXPECT_TRUE(i.globals[1].constant);
  EXPECT_EQ(i.kernels.size(), 1u);
}

TEST(Ptx, text_that_is_not_ptx_is_distinguished_from_broken_ptx) {
  const std::pair<std::string, ImageError> cases[] = {
      {"", ImageError::not_ptx},
      {"hello", ImageError::not_ptx},
      {".version 99.0 .target sm_90", ImageError::unsupported_version},
      {".version 7.0", ImageError::syntax},
      {ptx_head + ".entry k(.param .nonsense x) {}", ImageError::syntax},
      {ptx_head + ".entry k(.param .u64 x", ImageError::syntax},
      {ptx_head + ".entry k(.param .b8 x[32764]) {}", ImageError::none},
      {ptx_head + ".entry k(.param .b8 x[32765]) {}", ImageError::syntax},
      {ptx_head + ".entry k(.param .b8 x[18446744073709551615]) {}", ImageError::syntax},
      {ptx_head + ".entry k(.param .u64 x) {", ImageError::none},
  };
  for (const auto& [text, error] : cases) {
    Image i;
    EXPECT_EQ(parse_ptx(text, &i), error) << text;
  }
}

TEST(Ptx, truncated_at_any_point_neither_crashes_nor_hangs_the_parser) {
  const std::string text =
      ptx_head +
      "/* c */ .global .b8 s[3] = {1,2,3}; .entry k(.param .u64 a) .maxntid 4 { \"}\" ret; } .func f() { }";
  for (size_t n = 0; n <= text.size(); ++n) {
    Image i;
    parse_ptx(text.substr(0, n), &i);
    EXPECT_LE(i.kernels.size(), 1u);
  }
}

}  // namespace
}  // namespace carve::sim
