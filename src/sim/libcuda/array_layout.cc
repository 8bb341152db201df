#include "sim/libcuda/array_layout.h"

#include <algorithm>
#include <bit>
#include <span>

namespace carve::sim {
namespace {

constexpr uint64_t padded(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }
constexpr uint64_t tile_row_bytes = 512, tile_rows = 8;

struct Plane {
  unsigned element_bytes;
  unsigned channels;
  unsigned narrower, lower;  // Divisors of the array's width and height.
};
struct Format {
  CUarray_format first, last;
  unsigned channel_bytes;  // 0 if element_bytes is sufficient.
  unsigned element_bytes;
  unsigned block;
  unsigned planes;
  Plane plane[3];
};
constexpr unsigned k8 = CU_AD_FORMAT_UNSIGNED_INT8, k16 = CU_AD_FORMAT_UNSIGNED_INT16;

// Element sizes, as the names of the formats imply them.
constexpr Format format_table[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 1, 0, {}},
    {CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT16, 2, 0, 1, 0, {}},
    {CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_UNSIGNED_INT32, 4, 0, 1, 0, {}},
    {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8, 1, 0, 1, 0, {}},
    {CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16, 2, 0, 1, 0, {}},
    {CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32, 4, 0, 1, 0, {}},
    {CU_AD_FORMAT_HALF, CU_AD_FORMAT_HALF, 2, 0, 1, 0, {}},
    {CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_FLOAT, 4, 0, 1, 0, {}},
    {CU_AD_FORMAT_UNORM_INT_101010_2, CU_AD_FORMAT_UNORM_INT_101010_2, 0, 4, 1, 0, {}},
    {CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_BC1_UNORM_SRGB, 0, 8, 4, 0, {}},
    {CU_AD_FORMAT_BC2_UNORM, CU_AD_FORMAT_BC3_UNORM_SRGB, 0, 16, 4, 0, {}},
    {CU_AD_FORMAT_BC4_UNORM, CU_AD_FORMAT_BC4_SNORM, 0, 8, 4, 0, {}},
    {CU_AD_FORMAT_BC5_UNORM, CU_AD_FORMAT_BC7_UNORM_SRGB, 0, 16, 4, 0, {}},
    {CU_AD_FORMAT_P010, CU_AD_FORMAT_P010, 0, 0, 1, 2, {{2, 1, 1, 1}, {4, 2, 2, 2}}},
    {CU_AD_FORMAT_P016, CU_AD_FORMAT_P016, 0, 0, 1, 2, {{2, 1, 1, 1}, {4, 2, 2, 2}}},
    {CU_AD_FORMAT_NV16, CU_AD_FORMAT_NV16, 0, 0, 1, 2, {{1, 1, 1, 1}, {2, 2, 2, 1}}},
    {CU_AD_FORMAT_P210, CU_AD_FORMAT_P216, 0, 0, 1, 2, {{2, 1, 1, 1}, {4, 2, 2, 1}}},
    {CU_AD_FORMAT_YUY2, CU_AD_FORMAT_YUY2, 0, 2, 1, 0, {}},
    {CU_AD_FORMAT_Y210, CU_AD_FORMAT_Y216, 0, 4, 1, 0, {}},
    {CU_AD_FORMAT_AYUV, CU_AD_FORMAT_Y410, 0, 4, 1, 0, {}},
    {CU_AD_FORMAT_NV12, CU_AD_FORMAT_NV12, 0, 0, 1, 2, {{1, 1, 1, 1}, {2, 2, 2, 2}}},
    {CU_AD_FORMAT_Y416, CU_AD_FORMAT_Y416, 0, 8, 1, 0, {}},
    {CU_AD_FORMAT_Y444_PLANAR8,
     CU_AD_FORMAT_Y444_PLANAR8,
     0,
     0,
     1,
     3,
     {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}},
    {CU_AD_FORMAT_Y444_PLANAR10,
     CU_AD_FORMAT_Y444_PLANAR10,
     0,
     0,
     1,
     3,
     {{2, 1, 1, 1}, {2, 1, 1, 1}, {2, 1, 1, 1}}},
    {CU_AD_FORMAT_YUV444_8bit_SemiPlanar,
     CU_AD_FORMAT_YUV444_8bit_SemiPlanar,
     0,
     0,
     1,
     2,
     {{1, 1, 1, 1}, {2, 2, 1, 1}}},
    {CU_AD_FORMAT_YUV444_16bit_SemiPlanar,
     CU_AD_FORMAT_YUV444_16bit_SemiPlanar,
     0,
     0,
     1,
     2,
     {{2, 1, 1, 1}, {4, 2, 1, 1}}},
    {CU_AD_FORMAT_UNORM_INT8X1, CU_AD_FORMAT_UNORM_INT8X1, 0, 1, 1, 0, {}},
    {CU_AD_FORMAT_UNORM_INT8X2, CU_AD_FORMAT_UNORM_INT8X2, 0, 2, 1, 0, {}},
    {CU_AD_FORMAT_UNORM_INT8X4, CU_AD_FORMAT_UNORM_INT8X4, 0, 4, 1, 0, {}},
    {CU_AD_FORMAT_UNORM_INT16X1, CU_AD_FORMAT_UNORM_INT16X1, 0, 2, 1, 0, {}},
    {CU_AD_FORMAT_UNORM_INT16X2, CU_AD_FORMAT_UNORM_INT16X2, 0, 4, 1, 0, {}},
    {CU_AD_FORMAT_UNORM_INT16X4, CU_AD_FORMAT_UNORM_INT16X4, 0, 8, 1, 0, {}},
    {CU_AD_FORMAT_SNORM_INT8X1, CU_AD_FORMAT_SNORM_INT8X1, 0, 1, 1, 0, {}},
    {CU_AD_FORMAT_SNORM_INT8X2, CU_AD_FORMAT_SNORM_INT8X2, 0, 2, 1, 0, {}},
    {CU_AD_FORMAT_SNORM_INT8X4, CU_AD_FORMAT_SNORM_INT8X4, 0, 4, 1, 0, {}},
    {CU_AD_FORMAT_SNORM_INT16X1, CU_AD_FORMAT_SNORM_INT16X1, 0, 2, 1, 0, {}},
    {CU_AD_FORMAT_SNORM_INT16X2, CU_AD_FORMAT_SNORM_INT16X2, 0, 4, 1, 0, {}},
    {CU_AD_FORMAT_SNORM_INT16X4, CU_AD_FORMAT_SNORM_INT16X4, 0, 8, 1, 0, {}},
};

const Format* format_of(CUarray_format f) {
  for (const Format& known : format_table)
    if (f >= known.first && f <= known.last) return &known;
  return nullptr;
}

constexpr unsigned color_attachment = 0x20;  // CUDA_ARRAY3D_COLOR_ATTACHMENT of cuda.h.
constexpr unsigned array_flags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_DEPTH_TEXTURE | color_attachment |
                                 CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
constexpr unsigned in_slices = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;

// Returns whether the extents are within the texture limits of compute capability 7.0 and newer.
// cuDeviceGetAttribute returns the same limits.
bool extents_exist(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  const bool slices = d.Flags & in_slices;
  if (d.Width == 0 || (d.Flags & ~array_flags)) return false;
  if (d.Flags & CUDA_ARRAY3D_CUBEMAP) {
    const bool layered = d.Flags & CUDA_ARRAY3D_LAYERED;
    return d.Width == d.Height && d.Width <= 32768 &&
           (layered ? d.Depth && d.Depth % 6 == 0 && d.Depth <= 2046 : d.Depth == 6);
  }
  if (slices) return d.Depth && d.Depth <= 2048 && d.Width <= 32768 && d.Height <= 32768;
  if (d.Depth) return d.Height && d.Width <= 16384 && d.Height <= 16384 && d.Depth <= 16384;
  return d.Width <= 131072 && d.Height <= 65536;
}

// The shape of a tile of 64 KiB in elements (x, y, z), for elements of 1, 2, 4, 8 and 16 bytes.
constexpr unsigned tiles_2d[5][3] = {{256, 256, 1}, {256, 128, 1}, {128, 128, 1}, {128, 64, 1}, {64, 64, 1}};
constexpr unsigned tiles_3d[5][3] = {{64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};

ArrayPart part_of(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned element_bytes, unsigned block) {
  ArrayPart p;
  p.descriptor = d;
  p.element_bytes = element_bytes;
  p.block = block;
  p.row_bytes = (d.Width + block - 1) / block * element_bytes;
  p.rows = (std::max<uint64_t>(d.Height, 1) + block - 1) / block;
  p.slices = std::max<uint64_t>(d.Depth, 1);
  return p;
}

// Places the part after the parts so far.
void place(ArrayPart& p, uint64_t* end) {
  p.pitch = padded(p.row_bytes, tile_row_bytes);
  p.slice_pitch = p.pitch * (p.rows < tile_rows ? std::bit_ceil(p.rows) : padded(p.rows, tile_rows));
  p.offset = *end;
  *end += p.slice_pitch * p.slices;
}

void place_tiled(const ArrayLayout& l, ArrayPart& p, uint64_t* end) {
  p.tiled = true;
  p.offset = *end;
  p.tiles[0] = (p.row_bytes + l.tile[0] - 1) / l.tile[0];
  p.tiles[1] = (p.rows + l.tile[1] - 1) / l.tile[1];
  p.tiles[2] = (p.slices + l.tile[2] - 1) / l.tile[2];
  *end += p.tiles[0] * p.tiles[1] * p.tiles[2] * tile_bytes;
}

}  // namespace

CUresult lay_out(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels, ArrayLayout* out) {
  const Format* f = format_of(d.Format);
  if (!f || !extents_exist(d)) return CUDA_ERROR_INVALID_VALUE;
  const bool sparse = d.Flags & CUDA_ARRAY3D_SPARSE, slices = d.Flags & in_slices;
  if (f->channel_bytes && d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4)
    return CUDA_ERROR_INVALID_VALUE;
  if (sparse && (f->planes || d.Height == 0 || (d.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)))
    return CUDA_ERROR_INVALID_VALUE;
  if (f->planes && (levels || d.Depth || d.Height == 0)) return CUDA_ERROR_INVALID_VALUE;
  ArrayLayout l;
  uint64_t end = 0;
  l.planes = f->planes;
  for (const Plane& plane : std::span(f->plane, f->planes)) {
    const auto channel = static_cast<CUarray_format>(plane.element_bytes / plane.channels == 1 ? k8 : k16);
    const CUDA_ARRAY3D_DESCRIPTOR as = {(d.Width + plane.narrower - 1) / plane.narrower,
                                        (d.Height + plane.lower - 1) / plane.lower,
                                        0,
                                        channel,
                                        plane.channels,
                                        d.Flags};
    l.parts.push_back(part_of(as, plane.element_bytes, 1));
    place(l.parts.back(), &end);
  }
  if (f->planes) {
    l.bytes = padded(end, tile_bytes);
    *out = std::move(l);
    return CUDA_SUCCESS;
  }

  const unsigned element = f->channel_bytes ? f->channel_bytes * d.NumChannels : f->element_bytes;
  if (sparse) {
    const auto& shape = (d.Depth && !slices ? tiles_3d : tiles_2d)[std::countr_zero(element)];
    for (unsigned i = 0; i < 3; ++i) l.tile_texels[i] = shape[i] * (i < 2 ? f->block : 1);
    l.tile[0] = uint64_t{shape[0]} * element;
    l.tile[1] = shape[1];
    l.tile[2] = shape[2];
  }
  const uint64_t longest = std::max({d.Width, d.Height, slices ? 0 : d.Depth});
  const unsigned count = std::clamp(levels, 1u, static_cast<unsigned>(std::bit_width(longest)));
  l.tail_first = count;
  for (unsigned i = 0; i < count; ++i) {
    const auto smaller = [i](size_t n) { return n ? std::max<size_t>(n >> i, 1) : 0; };
    CUDA_ARRAY3D_DESCRIPTOR level = d;
    level.Width = smaller(d.Width);
    level.Height = smaller(d.Height);
    if (!slices) level.Depth = smaller(d.Depth);
    ArrayPart p = part_of(level, element, f->block);
    const bool spans = p.row_bytes >= l.tile[0] && p.rows >= l.tile[1] && p.slices >= l.tile[2];
    if (sparse && spans && l.tail_first == count) {
      place_tiled(l, p, &end);
    } else {
      if (sparse && l.tail_first == count) l.tail_first = i, l.tail_offset = end;
      place(p, &end);
    }
    l.parts.push_back(p);
  }
  l.bytes = padded(end, tile_bytes);
  if (l.tail_first != count) l.tail_bytes = l.bytes - l.tail_offset;
  *out = std::move(l);
  return CUDA_SUCCESS;
}

uint64_t offset_in(const ArrayLayout& l, const ArrayPart& p, uint64_t x, uint64_t row, uint64_t slice,
                   uint64_t* run) {
  if (!p.tiled) {
    *run = p.row_bytes - x;
    return p.offset + slice * p.slice_pitch + row * p.pitch + x;
  }
  const uint64_t tile = (slice / l.tile[2] * p.tiles[1] + row / l.tile[1]) * p.tiles[0] + x / l.tile[0];
  const uint64_t in_x = x % l.tile[0], in_y = row % l.tile[1], in_z = slice % l.tile[2];
  *run = std::min(l.tile[0] - in_x, p.row_bytes - x);
  return p.offset + tile * tile_bytes + (in_z * l.tile[1] + in_y) * l.tile[0] + in_x;
}

}  // namespace carve::sim
