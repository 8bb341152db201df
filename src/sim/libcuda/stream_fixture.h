// Streams that stand still for as long as a test wants. A test that launches a kernel of 20 ms and then says
// that it is not done yet fails where its process was not run for 20 ms; behind a closed blocker nothing is
// done, however late we are.
#pragma once

#include <atomic>

#include "sim/libcuda/test_child.h"

namespace carve::sim {

inline CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream s = nullptr;
  OK(CU(cuStreamCreate)(&s, flags));
  return s;
}
inline CUevent event() {
  CUevent e = nullptr;
  OK(CU(cuEventCreate)(&e, 0));
  return e;
}
inline uint32_t* pinned() {
  void* p = nullptr;
  OK(CU(cuMemAllocHost_v2)(&p, 4096));
  return static_cast<uint32_t*>(p);
}

// Holds streams back until `open`: what was submitted by then runs as the model says.
class StreamBlocker {
 public:
  void close(CUstream s) const {
    OK(CU(cuStreamWaitValue32)(s, reinterpret_cast<CUdeviceptr>(word_), 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  // Both begin at one moment of the model: two that look at the word themselves see it as far apart as who
  // looks for them was kept from running.
  void close_both(CUstream s, CUstream t) const {
    close(s);
    CUevent opened = event();
    OK(CU(cuEventRecord)(opened, s));
    OK(CU(cuStreamWaitEvent)(t, opened, 0));
  }
  void open() const { std::atomic_ref(*word_).store(1); }

 private:
  uint32_t* word_ = pinned();
};

}  // namespace carve::sim
