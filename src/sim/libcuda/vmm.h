// Memory that a program maps itself: physical memory by handle, address ranges, and mappings of one onto the
// other. A handle's memory lives until all references to the handle and all mappings are released. Exported
// memory also lives until all descriptors are closed and all other processes have released it.
#pragma once

#include <memory>

#include "sim/libcuda/driver_state.h"
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
      shared;  // Set if it can be exported or was imported; otherwise the memory is private to this process.
  char* at = nullptr;
  bool counted = false;  // Counted in the process's holding.
  std::shared_ptr<Multicast>
      multicast;  // Set if the handle is a multicast object, which has no memory of its own.

  Backing() = default;
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  ~Backing();
};

// Returns a handle for the memory, with one more reference.
CUmemGenericAllocationHandle hold_backing(std::shared_ptr<Backing>);
// Returns the memory of a handle that the program holds, or nullptr.
std::shared_ptr<Backing> find_backing(CUmemGenericAllocationHandle);
// Returns the memory mapped at an address, and the offset of the address in it.
std::shared_ptr<Backing> backing_at(CUdeviceptr, uint64_t* offset);

}  // namespace carve::sim
