#include "sim/libcuda/array_layout.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace carve::sim {
namespace {

constexpr auto byte_format = CU_AD_FORMAT_UNSIGNED_INT8;

ArrayLayout laid_out(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels = 0) {
  ArrayLayout l;
  EXPECT_EQ(lay_out(d, levels, &l), CUDA_SUCCESS);
  return l;
}

TEST(ArrayLayout, sizes_are_padded_rows_in_multiples_of_64_KiB) {
  const struct {
    CUDA_ARRAY3D_DESCRIPTOR d;
    unsigned levels;
    uint64_t bytes;
  } table[] = {
      {{1, 0, 0, byte_format, 1, 0}, 0, tile_bytes},
      {{131072, 0, 0, byte_format, 4, 0}, 0, 8 * tile_bytes},
      {{100, 100, 0, byte_format, 1, 0}, 0, tile_bytes},
      {{513, 128, 0, byte_format, 1, 0}, 0, 2 * tile_bytes},
      {{128, 129, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 0, 2 * tile_bytes},
      {{512, 3, 64, byte_format, 1, 0}, 0, 2 * tile_bytes},
      {{512, 128, 3, byte_format, 1, CUDA_ARRAY3D_LAYERED}, 0, 3 * tile_bytes},
      {{512, 512, 6, byte_format, 1, CUDA_ARRAY3D_CUBEMAP}, 0, 24 * tile_bytes},
      {{1024, 1024, 0, byte_format, 1, 0}, 2, 20 * tile_bytes},
      {{1024, 1024, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0}, 0, 8 * tile_bytes},
      {{1024, 512, 0, CU_AD_FORMAT_NV12, 3, 0}, 0, 12 * tile_bytes},
  };
  for (const auto& row : table) EXPECT_EQ(laid_out(row.d, row.levels).bytes, row.bytes) << row.d.Width;
}

TEST(ArrayLayout, extents_and_formats_that_no_device_supports_are_rejected) {
  const struct {
    CUDA_ARRAY3D_DESCRIPTOR d;
    unsigned levels;
  } table[] = {
      {{0, 0, 0, byte_format, 1, 0}, 0},
      {{16, 16, 0, byte_format, 3, 0}, 0},
      {{16, 16, 0, static_cast<CUarray_format>(7), 1, 0}, 0},
      {{16, 16, 0, byte_format, 1, 1u << 20}, 0},
      {{131073, 0, 0, byte_format, 1, 0}, 0},
      {{16385, 16, 16, byte_format, 1, 0}, 0},
      {{16, 0, 16, byte_format, 1, 0}, 0},
      {{16, 16, 2049, byte_format, 1, CUDA_ARRAY3D_LAYERED}, 0},
      {{16, 16, 5, byte_format, 1, CUDA_ARRAY3D_CUBEMAP}, 0},
      {{16, 8, 6, byte_format, 1, CUDA_ARRAY3D_CUBEMAP}, 0},
      {{512, 0, 0, byte_format, 1, CUDA_ARRAY3D_SPARSE}, 0},
      {{512, 512, 0, CU_AD_FORMAT_NV12, 3, 0}, 2},
  };
  for (const auto& row : table) {
    ArrayLayout l;
    EXPECT_EQ(lay_out(row.d, row.levels, &l), CUDA_ERROR_INVALID_VALUE) << &row - table;
  }
}

TEST(ArrayLayout, levels_are_halved_down_to_one_element) {
  const ArrayLayout l = laid_out({100, 30, 0, byte_format, 1, 0}, 99);
  ASSERT_EQ(l.parts.size(), 7u);
  EXPECT_EQ(l.parts[6].descriptor.Width, 1u);
  EXPECT_EQ(l.parts[6].descriptor.Height, 1u);
  EXPECT_EQ(laid_out({4, 4, 9, byte_format, 1, CUDA_ARRAY3D_LAYERED}, 9).parts.size(), 3u) << "layers stay";
  EXPECT_EQ(laid_out({4, 4, 9, byte_format, 1, CUDA_ARRAY3D_LAYERED}, 9).parts[2].slices, 9u);
  EXPECT_EQ(laid_out({4, 4, 9, byte_format, 1, 0}, 9).parts[3].slices, 1u);
}

TEST(ArrayLayout, a_sparse_array_consists_of_whole_tiles_and_a_tail) {
  const ArrayLayout l = laid_out({1000, 600, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE}, 10);
  EXPECT_EQ(l.tile_texels[0], 128u);
  EXPECT_EQ(l.tile_texels[1], 128u);
  EXPECT_EQ(l.parts[0].tiles[0] * l.parts[0].tiles[1], 8u * 5u);
  EXPECT_EQ(l.tail_first, 3u) << "125 x 75 does not span a tile";
  EXPECT_EQ(l.tail_bytes % tile_bytes, 0u);
  EXPECT_EQ(l.tail_offset + l.tail_bytes, l.bytes);
}

// No two bytes have the same position, and none is beyond the end.
TEST(ArrayLayout, every_byte_has_its_own_position) {
  std::mt19937 r(5);
  for (int round = 0; round < 40; ++round) {
    const bool sparse = r() % 2;
    const CUDA_ARRAY3D_DESCRIPTOR d = {1 + r() % (sparse ? 600 : 60),
                                       1 + r() % (sparse ? 300 : 40),
                                       r() % 2 ? 1 + r() % 3 : 0,
                                       byte_format,
                                       1,
                                       sparse ? CUDA_ARRAY3D_SPARSE : 0};
    const ArrayLayout l = laid_out(d, 1 + r() % 5);
    std::set<uint64_t> starts;
    uint64_t count = 0;
    for (const ArrayPart& p : l.parts)
      for (uint64_t z = 0; z < p.slices; ++z)
        for (uint64_t y = 0; y < p.rows; ++y)
          for (uint64_t x = 0, run = 0; x < p.row_bytes; x += run) {
            const uint64_t at = offset_in(l, p, x, y, z, &run);
            ASSERT_GT(run, 0u);
            ASSERT_LE(at + run, l.bytes);
            const auto next = starts.lower_bound(at + run);
            ASSERT_TRUE(next == starts.begin() || *std::prev(next) < at);
            starts.insert(at);
            // The last byte of a run is also in the run.
            starts.insert(at + run - 1);
            ++count;
          }
    EXPECT_GE(starts.size(), count);
  }
}

}  // namespace
}  // namespace carve::sim
