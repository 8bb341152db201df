// Helpers for the tests of graphs and captures.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sim/libcuda/stream_fixture.h"

namespace carve::sim {

inline CUgraph new_graph() {
  CUgraph g = nullptr;
  OK(CU(cuGraphCreate)(&g, 0));
  return g;
}

// Adds a kernel that spins for `ns` and depends on other nodes. 432 blocks fill the device once.
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

// Returns the model time of one launch.
inline float ms_of_launch(CUgraphExec x) {
  CUstream s = stream();
  CUevent start = event(), end = event();
  const StreamBlocker blocker;
  blocker.close(s);
  OK(CU(cuEventRecord)(start, s));
  OK(CU(cuGraphLaunch)(x, s));
  OK(CU(cuEventRecord)(end, s));
  blocker.open();
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
