// The memory layout of simulated arrays. NVIDIA does not document the layout of real arrays, and no program
// can see it: arrays are opaque, and only copies access them. A program can see only the size of an array,
// which is larger than its texels.
//
// An array consists of parts: the levels of a mipmapped array, the planes of a video format, or otherwise one
// part. A part consists of slices (its depth or its layers), which are rows of elements. A row is padded to
// 512 bytes, and the number of rows to a multiple of eight or, below eight, to a power of two. The whole is
// padded to 64 KiB. An element of a block-compressed format is a block of 4 x 4 texels.
//
// A sparse array is cut into tiles of 64 KiB, each of which is mapped to memory or unmapped. Their shapes are
// the standard ones of the graphics interfaces (Vulkan's "standard sparse image block shapes"). Levels that
// do not span one tile in every dimension are in the mip tail, one tail for all layers.
//
// The functions are pure and use neither a device nor a process.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/cuda.h"

namespace carve::sim {

inline constexpr uint64_t tile_bytes = 64 << 10;

struct ArrayPart {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};  // Describes the part as if it were a separate array.
  unsigned element_bytes = 0;
  unsigned block = 1;  // Texels per element, in both directions.
  uint64_t row_bytes = 0, rows = 0, slices = 0;
  uint64_t offset = 0;  // Offset of the part's first byte in the array.
  uint64_t pitch = 0, slice_pitch = 0;
  bool tiled = false;  // If true, the pitches are numbers of tiles, with x fastest.
  uint64_t tiles[3] = {};
};

struct ArrayLayout {
  std::vector<ArrayPart> parts;
  unsigned planes = 0;  // 0 unless it is a video format of several planes.
  uint64_t bytes = 0;
  // The size of a sparse array's tile in texels and in (bytes, rows, slices).
  unsigned tile_texels[3] = {};
  uint64_t tile[3] = {};
  unsigned tail_first = 0;  // The first level in the tail; equal to the number of levels if there is no tail.
  uint64_t tail_offset = 0, tail_bytes = 0;
};

// Computes the layout of an array (`levels` is 0) or of a mipmapped array, whose number of levels is clamped
// to the maximum for its extents. Returns CUDA_ERROR_INVALID_VALUE for extents, formats and flags that no
// device has.
CUresult lay_out(const CUDA_ARRAY3D_DESCRIPTOR&, unsigned levels, ArrayLayout*);

// Returns the position of byte `x` of a row in the array, and how many bytes of the row follow there without
// a gap.
uint64_t offset_in(const ArrayLayout&, const ArrayPart&, uint64_t x, uint64_t row, uint64_t slice,
                   uint64_t* run);

}  // namespace carve::sim
