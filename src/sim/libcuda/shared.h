// A segment of this process: memory that other processes can open, by number or through a descriptor, and
// whose bytes are the same in all of them. Its file stays mapped through an open file description that holds
// a lock (sim/model/FORMAT.md), and no descriptor is kept. So a program that closes all its descriptors loses
// no memory, and a forked child inherits none of it.
#pragma once

#include <memory>

#include "sim/libcuda/driver_state.h"

namespace carve::sim {

class Shared {
 public:
  enum class Counted { for_the_process, in_the_context, nowhere };

  // Creates zeroed memory on a device (its ordinal in the set). `Counted` determines how its bytes are
  // counted: for the process, which takes them from the device and may fail with CUDA_ERROR_OUT_OF_MEMORY; in
  // a context, which already has the blocks and gives them up; or not at all, for host memory.
  static CUresult create(unsigned device, uint64_t bytes, Counted, CUctx_st* context,
                         std::shared_ptr<Shared>*);

  // Opens another process's segment by its number. Fails with CUDA_ERROR_INVALID_VALUE if it no longer
  // exists.
  static CUresult open(unsigned device, unsigned index, uint64_t serial, std::shared_ptr<Shared>*);
  static CUresult open(int descriptor, std::shared_ptr<Shared>*);

  // Returns a new descriptor, which keeps the memory allocated in any process, or -1 if the process cannot
  // open more descriptors.
  int descriptor() const;

  char* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  unsigned device() const { return device_; }
  unsigned index() const { return index_; }
  uint64_t serial() const { return serial_; }

  // Closes the segment, and releases the memory if no other process holds it.
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

 private:
  Shared() = default;
  bool map(int fd);

  unsigned device_ = 0, index_ = 0;
  uint64_t serial_ = 0, bytes_ = 0;
  char* base_ = nullptr;
};

}  // namespace carve::sim
