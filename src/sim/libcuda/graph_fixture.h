// Shorthands of the tests of graphs and captures.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {

inline constexpr uint64_t ms = 1'000'000;

inline CUgraph new_graph() {
  CUgraph g = nullptr;
  OK(CU(cuGraphCreate)(&g, 0));
  return g;
}
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

// A spin of so many nanoseconds behind some nodes; 432 blocks fill the card once.
inline CUgraphNode kernel_node(CUgraph g, CUfunction f, uint64_t ns, const std::vector<CUgraphNode>& after,
                               unsigned blocks = 432, CUcontext context = nullptr) {
  uint32_t other = 0;
  void* parameters[] = {&ns, &other};
  CUDA_KERNEL_NODE_PARAMS p = {};
  p.func = f;
  p.gridDimX = blocks, p.gridDimY = p.gridDimZ = 1;
  p.blockDimX = 256, p.blockDimY = p.blockDimZ = 1;
  p.kernelParams = parameters;
  p.ctx = context;
  CUgraphNode node = nullptr;
  OK(CU(cuGraphAddKernelNode_v2)(&node, g, after.data(), after.size(), &p));
  return node;
}

inline CUgraphExec instantiate(CUgraph g) {
  CUgraphExec x = nullptr;
  OK(CU(cuGraphInstantiateWithFlags)(&x, g, 0));
  return x;
}

// Holds streams back until `open`: what was submitted by then runs as the model says, however slowly this
// process was allowed to submit it.
class Gate {
 public:
  void close(CUstream s) const {
    OK(CU(cuStreamWaitValue32)(s, reinterpret_cast<CUdeviceptr>(word_), 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  void open() const { std::atomic_ref(*word_).store(1); }

 private:
  uint32_t* word_ = pinned();
};

// Model time of one launch.
inline float ms_of_launch(CUgraphExec x) {
  CUstream s = stream();
  CUevent start = event(), end = event();
  const Gate gate;
  gate.close(s);
  OK(CU(cuEventRecord)(start, s));
  OK(CU(cuGraphLaunch)(x, s));
  OK(CU(cuEventRecord)(end, s));
  gate.open();
  OK(CU(cuStreamSynchronize)(s));
  float took = 0;
  OK(CU(cuEventElapsedTime)(&took, start, end));
  OK(CU(cuStreamDestroy_v2)(s));
  return took;
}
inline float ms_of_launch(CUgraph g) {
  const CUgraphExec x = instantiate(g);
  const float took = ms_of_launch(x);
  OK(CU(cuGraphExecDestroy)(x));
  return took;
}

}  // namespace carve::sim
