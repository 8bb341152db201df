// Streams that a test blocks for as long as it needs. A test that launches a kernel of 20 ms and expects it
// to be unfinished would fail if its process is suspended for 20 ms. Behind a closed blocker, no work
// completes however long the test is delayed.
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

// Blocks streams until `open` is called. The work submitted by then runs by the model's rules.
class StreamBlocker {
 public:
  void close(CUstream s) const {
    OK(CU(cuStreamWaitValue32)(s, reinterpret_cast<CUdeviceptr>(word_), 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  // Blocks both streams such that they begin at the same model time. If each polled the word itself, their
  // starts would differ by the delays of the polls.
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
