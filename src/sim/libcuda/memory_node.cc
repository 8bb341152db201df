// Nodes that allocate and free.
#include "sim/libcuda/graph_calls.h"

namespace carve::sim {

CUresult memory_payload(const CUgraphNodeParams&, Payload*, std::shared_ptr<CUctx_st>*) {
  return unsupported("graph nodes that allocate memory");
}
CUresult signal_steps(const SemaphoreSignalNode&, std::vector<Step>*) {
  return unsupported("graph nodes that signal external semaphores");
}
CUresult wait_steps(const SemaphoreWaitNode&, std::vector<Step>*) {
  return unsupported("graph nodes that wait for external semaphores");
}

}  // namespace carve::sim
