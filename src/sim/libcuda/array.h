// Arrays of this process: handles, and their memory. The levels of a mipmapped array and the planes of a
// video format are arrays with their own handles, which share the array's memory and are freed with it.
//
// An array's memory is allocated with it or mapped later (cuMemMapArrayAsync), from memory of cuMemCreate:
// tile by tile for a sparse array, as a whole for a deferred one. Whether it is mapped or not, the array has
// a range of addresses that no program sees.
#pragma once

#include "sim/libcuda/array_layout.h"
#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/vmm.h"

namespace carve::sim {

struct ArrayMemory {
  CUctx_st* context = nullptr;  // Outlives the array.
  unsigned flags = 0;
  ArrayLayout layout;
  uint64_t base = 0;
  uint64_t range = 0;     // Addresses, if the memory is mapped later or has another owner; otherwise 0.
  bool external = false;  // The array is in external memory.

  std::mutex mapping;                           // Guards the fields below.
  std::vector<std::shared_ptr<Backing>> tiles;  // Memory of a sparse array, by the number of the tile.
  std::shared_ptr<Backing> whole;               // Memory of a deferred array.

  bool sparse() const { return flags & CUDA_ARRAY3D_SPARSE; }
  bool deferred() const { return flags & CUDA_ARRAY3D_DEFERRED_MAPPING; }
};

}  // namespace carve::sim

struct CUarray_st {
  std::shared_ptr<carve::sim::ArrayMemory> memory;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  unsigned part = 0;
  bool child = false;  // True for a level or a plane.
  std::vector<std::shared_ptr<CUarray_st>>
      planes;  // Planes of a video format; such an array has no part of its own.
};

struct CUmipmappedArray_st {
  std::shared_ptr<carve::sim::ArrayMemory> memory;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  std::vector<std::shared_ptr<CUarray_st>> levels;
};

namespace carve::sim {

// Returns the array of a handle, or nullptr.
std::shared_ptr<CUarray_st> find_array(CUarray);
std::shared_ptr<CUmipmappedArray_st> find_mipmap(CUmipmappedArray);

// Creates a mipmapped array in a buffer that is mapped onto external memory. The array does not own the
// buffer, which is freed with the external memory.
CUmipmappedArray mipmap_over(CUctx_st&, const CUDA_ARRAY3D_DESCRIPTOR&, ArrayLayout, uint64_t base);

// Returns the bytes of a sparse array from a position on, or nullptr for an unmapped tile, and the number of
// bytes of the row there. Requires the lock of `mapping`.
char* sparse_bytes(const ArrayMemory&, const ArrayPart&, uint64_t x, uint64_t row, uint64_t slice,
                   uint64_t* run);

// Removes the context's arrays before the context is destroyed.
void forget_arrays(CUctx_st&);

}  // namespace carve::sim
