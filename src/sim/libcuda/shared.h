// A segment as this process holds it: memory that other processes can open, by number or through a
// descriptor, and whose bytes are the same for all of them. Its file is mapped, with a description that
// carries a lock (sim/model/FORMAT.md), and no descriptor is kept: a program that closes all it has loses
// nothing, and a forked child inherits nothing.
#pragma once

#include <memory>

#include "sim/libcuda/process.h"

namespace carve::sim {

class Shared {
 public:
  enum class Counted { for_the_process, in_the_context, nowhere };

  // New memory on a device (its ordinal in the set), zeroed. Counted for the process: the device is asked,
  // and may refuse with CUDA_ERROR_OUT_OF_MEMORY. In the context: it has the blocks already, and gives them
  // up. Nowhere: memory of the host.
  static CUresult create(unsigned device, uint64_t bytes, Counted, CUctx_st* context,
                         std::shared_ptr<Shared>*);

  // Another's, by its number; CUDA_ERROR_INVALID_VALUE when that is no more.
  static CUresult open(unsigned device, unsigned index, uint64_t serial, std::shared_ptr<Shared>*);
  static CUresult open(int descriptor, std::shared_ptr<Shared>*);

  // A new descriptor, which keeps the memory alive wherever it goes; -1 if the process can have no more.
  int descriptor() const;

  char* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  unsigned device() const { return device_; }
  unsigned index() const { return index_; }
  uint64_t serial() const { return serial_; }

  // Leaves, and gives the memory back if nobody else has it.
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
