// Memory that a program maps itself: physical memory by handle, address ranges, and mappings of one onto the
// other. A handle's memory lives until all references to the handle, all mappings and, where it was exported,
// all descriptors and other processes have let go of it.
#pragma once

#include <memory>

#include "sim/libcuda/process.h"
#include "sim/libcuda/shared.h"

namespace carve::sim {

struct Multicast;  // sim/libcuda/multicast.h

// The physical memory behind a handle.
struct Backing {
  unsigned device = 0;  // Ordinal in the set.
  bool host = false;
  uint64_t bytes = 0;
  CUmemAllocationProp properties = {};
  CUmemGenericAllocationHandle handle = 0;
  std::shared_ptr<Shared>
      shared;  // Where it can be exported or was imported; else it is this process's alone.
  char* at = nullptr;
  bool counted = false;                  // In the process's holding.
  std::shared_ptr<Multicast> multicast;  // Instead: it has no memory of its own.

  Backing() = default;
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  ~Backing();
};

// A handle for it, with one reference more.
CUmemGenericAllocationHandle hold_backing(std::shared_ptr<Backing>);
// The memory of a handle that the program holds, or nullptr.
std::shared_ptr<Backing> find_backing(CUmemGenericAllocationHandle);
// The memory mapped at an address, and where in it the address lies.
std::shared_ptr<Backing> backing_at(CUdeviceptr, uint64_t* offset);

}  // namespace carve::sim
