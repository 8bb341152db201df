// Nodes that allocate and free, and queries about the memory of graphs. graph_memory.h counts the memory. As
// the documentation of cuGraphAddMemAllocNode requires, graphs with such nodes cannot be cloned or become
// child graphs, their nodes and edges cannot be removed, and they have at most one executable at a time.
#include <algorithm>
#include <cstring>

#include "sim/libcuda/graph_calls.h"
#include "sim/libcuda/graph_memory.h"

using namespace carve::sim;

namespace carve::sim {

CUresult memory_payload(const CUgraphNodeParams& p, Payload* out, std::shared_ptr<CUctx_st>* context) {
  if (const CUresult e = current(context)) return e;
  if (p.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    if (!graph_memory_is(p.free.dptr)) return CUDA_ERROR_INVALID_VALUE;
    *out = FreeNode{p.free.dptr};
    return CUDA_SUCCESS;
  }
  const CUmemPoolProps& props = p.alloc.poolProps;
  if (props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props.handleTypes ||
      props.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      (p.alloc.accessDescCount && !p.alloc.accessDescs) || p.alloc.accessDescCount > max_devices)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned device = 0;
  if (device_of(props.location.id, &device)) return CUDA_ERROR_INVALID_VALUE;
  AllocNode node;
  static_assert(sizeof node.params == sizeof p.alloc);
  std::memcpy(&node.params, &p.alloc, sizeof node.params);
  node.access.assign(p.alloc.accessDescs, p.alloc.accessDescs + p.alloc.accessDescCount);
  if (const CUresult e = make_block(device, p.alloc.bytesize, &node.block)) return e;
  node.params.dptr = node.block->address;
  *out = std::move(node);
  return CUDA_SUCCESS;
}

CUresult memory_fits(const CUgraph_st& g, const Payload& payload) {
  const auto* f = std::get_if<FreeNode>(&payload);
  if (!f && !std::holds_alternative<AllocNode>(payload)) return CUDA_SUCCESS;
  if (g.owned) return CUDA_ERROR_NOT_SUPPORTED;
  const auto frees_the_same = [&](const auto& n) {
    const auto* other = std::get_if<FreeNode>(&n->payload);
    return f && other && other->address == f->address;
  };
  return std::ranges::any_of(g.nodes, frees_the_same) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

bool has_memory(const CUgraph_st& g) {
  return std::ranges::any_of(g.nodes, [](const auto& n) {
    const auto* child = std::get_if<ChildNode>(&n->payload);
    return n->type() == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->type() == CU_GRAPH_NODE_TYPE_MEM_FREE ||
           (child && has_memory(*child->graph));
  });
}

CUresult signal_steps(const SemaphoreSignalNode&, std::vector<Step>*) {
  return unsupported("graph nodes that signal external semaphores");
}
CUresult wait_steps(const SemaphoreWaitNode&, std::vector<Step>*) {
  return unsupported("graph nodes that wait for external semaphores");
}

}  // namespace carve::sim

EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph g, const CUgraphNode* dependencies, size_t n,
                                       CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = {};
  p.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  std::memcpy(&p.alloc, params, sizeof p.alloc);
  const CUresult e = cuGraphAddNode(out, g, dependencies, n, &p);
  params->dptr = e ? 0 : p.alloc.dptr;
  return e;
}

EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph g, const CUgraphNode* dependencies, size_t n,
                                      CUdeviceptr pointer) {
  CUgraphNodeParams p = {};
  p.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  p.free.dptr = pointer;
  return cuGraphAddNode(out, g, dependencies, n, &p);
}

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice visible, CUgraphMem_attribute which, void* value) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  const GraphMemory m = graph_memory(device);
  auto* const out = static_cast<cuuint64_t*>(value);
  switch (which) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *out = m.used; return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *out = m.used_high; return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *out = m.reserved; return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *out = m.reserved_high; return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// Only high-water marks can be set, and only to zero, which makes them restart from the current value.
EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice visible, CUgraphMem_attribute which, void* value) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  const bool used = which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
  const bool reserved = which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (!value || *static_cast<const cuuint64_t*>(value) || (!used && !reserved))
    return CUDA_ERROR_INVALID_VALUE;
  graph_memory_reset(device, used, reserved);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice visible) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  graph_memory_trim(device);
  return CUDA_SUCCESS;
}
