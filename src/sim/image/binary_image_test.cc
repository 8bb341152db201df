// Cubins and fatbins as NVIDIA's tools make them: the files of tests/fuzz/corpus/module_images. They contain
// the two kernels that `expect_kernels` checks, translated by `ptxas -arch=sm_NN` of CUDA 12.9 and packed by
// nvFatbinAddCubin and nvFatbinAddPTX:
//
//   lz4.fatbin   libnvfatbin 12.9, -compress-all: sm_80, sm_86, sm_90, PTX for sm_52 without its first line
//   zstd.fatbin  libnvfatbin 13.5, -compress-mode=size: sm_86, sm_120, PTX for sm_75
//   ptx.fatbin   libnvfatbin 12.9, -compress=false: PTX for sm_52
#include "sim/image/binary_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "sim/image/decompress.h"

namespace carve::sim {
namespace {

std::string sample(const char* name) {
  std::ifstream in(std::string(CARVE_SOURCE_DIR "/tests/fuzz/corpus/module_images/") + name,
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void expect_kernels(const Image& image, bool compiled) {
  ASSERT_EQ(image.kernels.size(), 2u);
  const bool first = image.kernels[0].name == "mixed";
  const KernelImage &mixed = image.kernels[first ? 0 : 1], &bounded = image.kernels[first ? 1 : 0];
  EXPECT_EQ(mixed.name, "mixed");
  EXPECT_EQ(bounded.name, "bounded");
  EXPECT_EQ(mixed.registers, compiled ? 10u : 0u);
  EXPECT_EQ(bounded.registers, compiled ? 4u : 0u);
  EXPECT_GE(mixed.static_shared, 2048u);
  EXPECT_EQ(mixed.max_threads, 1024u);
  EXPECT_EQ(bounded.max_threads, 128u);
  ASSERT_EQ(mixed.parameters.size(), 4u);
  EXPECT_EQ(mixed.parameter_bytes, 44u);
  const Parameter wanted[] = {{0, 8}, {8, 1}, {16, 24}, {40, 4}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(mixed.parameters[i].offset, wanted[i].offset);
    EXPECT_EQ(mixed.parameters[i].bytes, wanted[i].bytes);
  }
  EXPECT_TRUE(bounded.parameters.empty());
  ASSERT_EQ(image.globals.size(), 2u);
  EXPECT_EQ(image.globals[0].name, "table");
  EXPECT_EQ(image.globals[0].bytes, 4096u);
  EXPECT_FALSE(image.globals[0].constant);
  EXPECT_EQ(image.globals[1].name, "settings");
  EXPECT_TRUE(image.globals[1].constant);
}

TEST(BinaryImage, of_a_cubin_lists_kernels_parameters_registers_and_variables) {
  Image image;
  ASSERT_EQ(parse_binary(sample("sm_86.cubin"), 86, &image), ImageError::none);
  EXPECT_EQ(image.target, 86u);
  EXPECT_EQ(image.code_bytes, 640u);  // 256 and 384 bytes in the sections of the two kernels.
  expect_kernels(image, true);
}

TEST(BinaryImage, of_a_cubin_runs_only_on_its_major_architecture_with_an_equal_or_newer_minor_one) {
  const struct {
    unsigned capability;
    ImageError expected;
  } cases[] = {{86, ImageError::none},
               {89, ImageError::none},
               {80, ImageError::no_code},
               {75, ImageError::no_code},
               {90, ImageError::no_code}};
  for (const auto& c : cases) {
    Image image;
    EXPECT_EQ(parse_binary(sample("sm_86.cubin"), c.capability, &image), c.expected) << c.capability;
  }
}

TEST(BinaryImage, of_a_fatbin_is_its_newest_cubin_that_runs_or_otherwise_its_ptx) {
  const struct {
    const char* name;
    unsigned capability, target;
    bool compiled;
  } cases[] = {{"lz4.fatbin", 80, 80, true},  {"lz4.fatbin", 86, 86, true},    {"lz4.fatbin", 89, 86, true},
               {"lz4.fatbin", 90, 90, true},  {"lz4.fatbin", 75, 52, false},   {"lz4.fatbin", 120, 52, false},
               {"zstd.fatbin", 86, 86, true}, {"zstd.fatbin", 120, 120, true}, {"zstd.fatbin", 90, 75, false},
               {"ptx.fatbin", 86, 52, false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << c.name << " on " << c.capability);
    Image image;
    ASSERT_EQ(parse_binary(sample(c.name), c.capability, &image), ImageError::none);
    EXPECT_EQ(image.target, c.target);
    if (c.target == 86 || !c.compiled) expect_kernels(image, c.compiled);
  }
  Image image;
  EXPECT_EQ(parse_binary(sample("zstd.fatbin"), 61, &image), ImageError::no_code);
}

TEST(BinaryImage, has_its_length_in_its_headers) {
  for (const char* name : {"lz4.fatbin", "zstd.fatbin", "ptx.fatbin"})
    EXPECT_EQ(binary_extent(sample(name).data()), sample(name).size()) << name;
  const std::string cubin = sample("sm_86.cubin");
  const size_t extent = binary_extent(cubin.data());
  EXPECT_LE(extent, cubin.size());  // Only the loader of real hardware uses the bytes after the sections.
  Image image;
  EXPECT_EQ(parse_binary(std::string_view(cubin).substr(0, extent), 86, &image), ImageError::none);
  EXPECT_EQ(binary_extent("not an image, but 64 bytes long, so that a header can be read."), 0u);
}

// An image that is truncated or has any byte changed is read within its bounds, which the sanitizers check.
// If it is accepted, the offsets of the parameters are inside their kernel's parameters.
TEST(BinaryImage, is_rejected_or_harmless_if_it_is_broken) {
  std::mt19937 random(5);
  for (const char* name : {"sm_86.cubin", "lz4.fatbin", "zstd.fatbin", "ptx.fatbin"}) {
    const std::string whole = sample(name);
    for (int round = 0; round < 2000; ++round) {
      std::string s = whole;
      if (round % 2) s.resize(random() % s.size());
      for (unsigned n = random() % 4; n && !s.empty(); --n)
        s[random() % s.size()] = static_cast<char>(random());
      Image image;
      if (parse_binary(s, 86, &image) != ImageError::none) continue;
      for (const KernelImage& k : image.kernels)
        for (const Parameter& p : k.parameters) EXPECT_LE(p.offset + p.bytes, k.parameter_bytes);
    }
  }
}

TEST(Decompress, copies_overlapping_lz4_matches_and_rejects_matches_before_the_beginning) {
  std::string out;
  using namespace std::string_literals;
  // "abc", 9 bytes from 3 bytes back, then the 5 literals that the format requires at the end of a block.
  EXPECT_TRUE(
      decompress_lz4("\x35"
                     "abc\x03\x00\x50vwxyz"s,
                     17, &out));
  EXPECT_EQ(out, "abcabcabcabcvwxyz");
  EXPECT_FALSE(
      decompress_lz4("\x35"
                     "abc\x04\x00\x50vwxyz"s,
                     17, &out));
  for (const size_t bytes : {16, 18})
    EXPECT_FALSE(
        decompress_lz4("\x35"
                       "abc\x03\x00\x50vwxyz"s,
                       bytes, &out));
  EXPECT_FALSE(
      decompress_lz4("\x35"
                     "abc\x04\x00\x00"s,
                     12, &out));
  EXPECT_FALSE(
      decompress_lz4("\x35"
                     "abc\x00\x00\x00"s,
                     12, &out));
  EXPECT_FALSE(
      decompress_lz4("\x35"
                     "abc\x03\x00\x00"s,
                     11, &out));
  EXPECT_FALSE(
      decompress_lz4("\x35"
                     "ab"s,
                     12, &out));
}

TEST(Decompress, reads_raw_and_repeated_zstd_blocks_in_several_frames) {
  using namespace std::string_literals;
  // Two frames: the first has a raw block of 3 bytes, the second one byte that is repeated 5 times.
  const std::string raw =
      "\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00"
      "abc"s;
  const std::string same = "\x28\xb5\x2f\xfd\x20\x05\x2b\x00\x00x"s;
  std::string out;
  EXPECT_TRUE(decompress_zstd(raw + same, 8, &out));
  EXPECT_EQ(out, "abcxxxxx");
  EXPECT_FALSE(decompress_zstd(raw + same, 7, &out));
  EXPECT_FALSE(decompress_zstd(raw + same, 9, &out));
  EXPECT_FALSE(decompress_zstd(raw + "\x28\xb5\x2f"s, 3, &out));
  EXPECT_FALSE(decompress_zstd("plain text", 10, &out));
}

TEST(Decompress, rejects_zstd_frames_with_a_wrong_checksum_and_unsupported_frames) {
  using namespace std::string_literals;
  // A raw block of 3 bytes, then the low half of its XXH64.
  const std::string checked =
      "\x28\xb5\x2f\xfd\x24\x03\x19\x00\x00"
      "abc\x99\x09\x77\xad"s;
  std::string wrong = checked;
  wrong.back() ^= 1;
  const std::string skippable = "\x50\x2a\x4d\x18\x01\x00\x00\x00x"s;
  const std::string with_dictionary =
      "\x28\xb5\x2f\xfd\x21\x07\x03\x19\x00\x00"
      "abc"s;
  const std::string of_version_0_7 =
      "\x27\xb5\x2f\xfd\x20\x03\x19\x00\x00"
      "abc"s;
  std::string out;
  EXPECT_TRUE(decompress_zstd(checked, 3, &out));
  EXPECT_EQ(out, "abc");
  EXPECT_FALSE(decompress_zstd(wrong, 3, &out));
  EXPECT_FALSE(decompress_zstd(checked.substr(0, checked.size() - 1), 3, &out));
  EXPECT_FALSE(decompress_zstd(skippable + checked, 3, &out));
  EXPECT_FALSE(decompress_zstd(with_dictionary, 3, &out));
  EXPECT_FALSE(decompress_zstd(of_version_0_7, 3, &out));
}

}  // namespace
}  // namespace carve::sim
