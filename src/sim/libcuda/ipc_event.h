// Events that several processes record and wait for (CU_EVENT_INTERPROCESS). The recordings are numbered in a
// page that the processes share, a segment that takes nothing of the device; the page says which are over.
//
// One is over when its process has performed what came before it, since others may look at memory that both
// have. A process that dies leaves none that is waited for: its last recording is over then.
#pragma once

#include <memory>

#include "sim/libcuda/shared.h"

namespace carve::sim {

class SharedEvent {
 public:
  static CUresult create(unsigned device, std::shared_ptr<SharedEvent>*);
  // CUDA_ERROR_MAP_FAILED when the event is no more, CUDA_ERROR_INVALID_VALUE for what is no handle.
  static CUresult open(const CUipcEventHandle&, std::shared_ptr<SharedEvent>*);
  CUipcEventHandle handle() const;

  // A new recording by this process: its number. It is over at the latest when what is written to *finish is
  // let go.
  uint64_t begin(const std::shared_ptr<SharedEvent>& self, std::shared_ptr<void>* finish);
  uint64_t last() const;
  // Takes no lock.
  bool over(uint64_t number) const;

 private:
  struct Page;
  explicit SharedEvent(std::shared_ptr<Shared> segment) : segment_(std::move(segment)) {}
  Page& page() const;
  std::shared_ptr<Shared> segment_;
};

}  // namespace carve::sim
