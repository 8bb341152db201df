// Arrays as this process holds them: handles, and the memory behind. A mipmapped array's levels and a video
// format's planes are arrays with handles of their own that share its memory and die with it.
//
// An array's memory comes with it, or later: of a sparse one tile by tile, of a deferred one as a whole, out
// of memory that cuMemCreate made (cuMemMapArrayAsync). Mapped or not, it has a range of addresses that no
// program is told.
#pragma once

#include "sim/libcuda/array_layout.h"
#include "sim/libcuda/process.h"
#include "sim/libcuda/vmm.h"

namespace carve::sim {

struct ArrayMemory {
  CUctx_st* context = nullptr;  // Lives longer.
  unsigned flags = 0;
  ArrayLayout layout;
  uint64_t base = 0;
  uint64_t range = 0;     // Of addresses, where the memory comes later or from elsewhere; else 0.
  bool external = false;  // It lies in external memory.

  std::mutex mapping;                           // Guards what follows.
  std::vector<std::shared_ptr<Backing>> tiles;  // Of a sparse array, by place.
  std::shared_ptr<Backing> whole;               // Of a deferred one.

  bool sparse() const { return flags & CUDA_ARRAY3D_SPARSE; }
  bool deferred() const { return flags & CUDA_ARRAY3D_DEFERRED_MAPPING; }
};

}  // namespace carve::sim

struct CUarray_st {
  std::shared_ptr<carve::sim::ArrayMemory> memory;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  unsigned part = 0;
  bool child = false;                               // A level or a plane.
  std::vector<std::shared_ptr<CUarray_st>> planes;  // Of a video format; then it has no part itself.
};

struct CUmipmappedArray_st {
  std::shared_ptr<carve::sim::ArrayMemory> memory;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  std::vector<std::shared_ptr<CUarray_st>> levels;
};

namespace carve::sim {

// By handle; nullptr for what is none.
std::shared_ptr<CUarray_st> find_array(CUarray);
std::shared_ptr<CUmipmappedArray_st> find_mipmap(CUmipmappedArray);

// A mipmapped array over a buffer that was mapped onto external memory, which is freed with it.
CUmipmappedArray mipmap_over(CUctx_st&, const CUDA_ARRAY3D_DESCRIPTOR&, ArrayLayout, uint64_t base);

// What a sparse array has at a place, from there on: where its bytes lie, or nullptr for a hole, and how many
// of the row. With `mapping` held.
char* sparse_bytes(const ArrayMemory&, const ArrayPart&, uint64_t x, uint64_t row, uint64_t slice,
                   uint64_t* run);

// The context is about to go, and its arrays with it.
void forget_arrays(CUctx_st&);

}  // namespace carve::sim
