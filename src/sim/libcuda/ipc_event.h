// Events that several processes record and wait for (CU_EVENT_INTERPROCESS). The processes share a page, a
// segment that takes no device memory. The page numbers the recordings and holds which of them are over.
//
// A recording is over when its process has performed the effects of the work before it, because other
// processes may then read memory that they share. When a process dies, its last recording counts as over, so
// that no process waits for it.
#pragma once

#include <memory>

#include "sim/libcuda/shared.h"

namespace carve::sim {

class SharedEvent {
 public:
  static CUresult create(unsigned device, std::shared_ptr<SharedEvent>*);
  // Opens an event. Fails with CUDA_ERROR_MAP_FAILED if it no longer exists, and with
  // CUDA_ERROR_INVALID_VALUE for an invalid handle.
  static CUresult open(const CUipcEventHandle&, std::shared_ptr<SharedEvent>*);
  CUipcEventHandle handle() const;

  // Begins a recording by this process and returns its number. The recording is over at the latest when
  // *finish is released.
  uint64_t begin(const std::shared_ptr<SharedEvent>& self, std::shared_ptr<void>* finish);
  uint64_t last() const;
  // Returns whether the recording is over. Takes no lock.
  bool over(uint64_t number) const;

 private:
  struct Page;
  explicit SharedEvent(std::shared_ptr<Shared> segment) : segment_(std::move(segment)) {}
  Page& page() const;
  std::shared_ptr<Shared> segment_;
};

}  // namespace carve::sim
