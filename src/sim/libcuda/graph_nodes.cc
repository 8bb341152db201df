// The calls that add nodes, describe them and change them. Each older call has its own structure and is
// implemented as the general call (cuGraphAddNode, cuGraphNodeSetParams) with that structure in its union.
// The calls that change a node of an executable forward to graph_exec.cc in the same way.
#include <cstring>

#include "sim/libcuda/graph.h"
#include "sim/libcuda/graph_calls.h"

using namespace carve::sim;

namespace {

CUresult add(CUgraphNode* out, CUgraph g, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
             size_t count, CUgraphNodeParams* params) {
  if (const CUresult e = entered()) return e;
  if (!out || !params) return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  if (!is_graph(g)) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && !g->conditions.contains(params->conditional.handle))
    return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH && params->graph.graph == g) return CUDA_ERROR_INVALID_VALUE;
  Payload payload;
  std::shared_ptr<CUctx_st> context;
  if (const CUresult e = payload_of(*params, &payload, &context)) return e;
  if (const CUresult e = memory_fits(*g, payload)) return e;
  CUgraphNode_st* node = nullptr;
  if (const CUresult e = add_node(*g, dependencies, data, count, context, std::move(payload), &node))
    return e;
  params_of(*node, params);
  *out = node;
  return CUDA_SUCCESS;
}

// Returns a node's parameters, if the node is of that kind.
CUresult get(CUgraphNode n, CUgraphNodeType type, CUgraphNodeParams* out) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_node(n) || n->type() != type) return CUDA_ERROR_INVALID_VALUE;
  params_of(*n, out);
  return CUDA_SUCCESS;
}

CUresult set(CUgraphNode n, const CUgraphNodeParams& params) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_node(n) || n->type() != params.type) return CUDA_ERROR_INVALID_VALUE;
  // Parameters of these kinds contain more than plain values.
  if (params.type == CU_GRAPH_NODE_TYPE_GRAPH || params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
      params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || params.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return CUDA_ERROR_NOT_SUPPORTED;
  Payload payload;
  std::shared_ptr<CUctx_st> context;
  if (const CUresult e = payload_of(params, &payload, &context)) return e;
  if (auto* k = std::get_if<KernelNode>(&payload))
    k->attributes = std::get<KernelNode>(n->payload).attributes;
  n->payload = std::move(payload);
  n->context = context;
  return CUDA_SUCCESS;
}

// Converts the older structures to the union's parameters.
CUgraphNodeParams of_type(CUgraphNodeType type) {
  CUgraphNodeParams p = {};
  p.type = type;
  return p;
}
CUgraphNodeParams kernel(const CUDA_KERNEL_NODE_PARAMS* k) {
  CUgraphNodeParams p = of_type(CU_GRAPH_NODE_TYPE_KERNEL);
  std::memcpy(&p.kernel, k, sizeof *k);
  return p;
}
CUgraphNodeParams kernel(const CUDA_KERNEL_NODE_PARAMS_v1* k) {
  CUgraphNodeParams p = of_type(CU_GRAPH_NODE_TYPE_KERNEL);
  std::memcpy(&p.kernel, k, sizeof *k);  // Version 1 is the beginning of version 2.
  return p;
}
CUgraphNodeParams copy(const CUDA_MEMCPY3D* m, CUcontext c) {
  CUgraphNodeParams p = of_type(CU_GRAPH_NODE_TYPE_MEMCPY);
  p.memcpy.copyParams = *m;
  p.memcpy.copyCtx = c;
  return p;
}
CUgraphNodeParams memset_of(const CUDA_MEMSET_NODE_PARAMS* m, CUcontext c) {
  CUgraphNodeParams p = of_type(CU_GRAPH_NODE_TYPE_MEMSET);
  p.memset = {m->dst, m->pitch, m->value, m->elementSize, m->width, m->height, c};
  return p;
}
CUgraphNodeParams host(const CUDA_HOST_NODE_PARAMS* h) {
  CUgraphNodeParams p = of_type(CU_GRAPH_NODE_TYPE_HOST);
  p.host = {h->fn, h->userData};
  return p;
}
CUgraphNodeParams child(CUgraph g) {
  CUgraphNodeParams p = of_type(CU_GRAPH_NODE_TYPE_GRAPH);
  p.graph = {g, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE};
  return p;
}
CUgraphNodeParams event(CUgraphNodeType type, CUevent e) {
  CUgraphNodeParams p = of_type(type);
  p.eventRecord.event = e;  // At the same offset as eventWait.event.
  return p;
}
CUgraphNodeParams batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS* b) {
  CUgraphNodeParams p = of_type(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  p.memOp = {b->ctx, b->count, b->paramArray, b->flags};
  return p;
}

CUresult add_made(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n, CUgraphNodeParams p) {
  return add(out, g, d, nullptr, n, &p);
}

constexpr CUresult bad_value = CUDA_ERROR_INVALID_VALUE;

}  // namespace

EXPORT CUresult cuGraphAddNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                               CUgraphNodeParams* p) {
  return add(out, g, d, nullptr, n, p);
}
EXPORT CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph g, const CUgraphNode* d,
                                  const CUgraphEdgeData* data, size_t n, CUgraphNodeParams* p) {
  return add(out, g, d, data, n, p);
}
EXPORT CUresult cuGraphNodeSetParams(CUgraphNode n, CUgraphNodeParams* p) {
  return p ? set(n, *p) : bad_value;
}
EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec x, CUgraphNode n, CUgraphNodeParams* p) {
  return p ? set_in_executable(x, n, *p) : bad_value;
}

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n) {
  return add_made(out, g, d, n, of_type(CU_GRAPH_NODE_TYPE_EMPTY));
}
EXPORT CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                     const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return p ? add_made(out, g, d, n, kernel(p)) : bad_value;
}
EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                        const CUDA_KERNEL_NODE_PARAMS* p) {
  return p ? add_made(out, g, d, n, kernel(p)) : bad_value;
}
EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                     const CUDA_MEMCPY3D* m, CUcontext c) {
  return m ? add_made(out, g, d, n, copy(m, c)) : bad_value;
}
EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                     const CUDA_MEMSET_NODE_PARAMS* m, CUcontext c) {
  return m ? add_made(out, g, d, n, memset_of(m, c)) : bad_value;
}
EXPORT CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                   const CUDA_HOST_NODE_PARAMS* h) {
  return h ? add_made(out, g, d, n, host(h)) : bad_value;
}
EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                         CUgraph c) {
  return add_made(out, g, d, n, child(c));
}
EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                          CUevent e) {
  return add_made(out, g, d, n, event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, e));
}
EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                        CUevent e) {
  return add_made(out, g, d, n, event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, e));
}
EXPORT CUresult cuGraphAddBatchMemOpNode(CUgraphNode* out, CUgraph g, const CUgraphNode* d, size_t n,
                                         const CUDA_BATCH_MEM_OP_NODE_PARAMS* b) {
  return b ? add_made(out, g, d, n, batch(b)) : bad_value;
}

// Calls that read and change a node with its own structure, in a graph and in an executable.
EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_KERNEL, &p) : bad_value) return e;
  std::memcpy(out, &p.kernel, sizeof *out);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_KERNEL, &p) : bad_value) return e;
  std::memcpy(out, &p.kernel, sizeof *out);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode n, CUDA_MEMCPY3D* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_MEMCPY, &p) : bad_value) return e;
  return *out = p.memcpy.copyParams, CUDA_SUCCESS;
}
EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_MEMSET, &p) : bad_value) return e;
  std::memcpy(out, &p.memset, sizeof *out);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode n, CUDA_HOST_NODE_PARAMS* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_HOST, &p) : bad_value) return e;
  *out = {p.host.fn, p.host.userData};
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode n, CUDA_BATCH_MEM_OP_NODE_PARAMS* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &p) : bad_value) return e;
  *out = {p.memOp.ctx, p.memOp.count, p.memOp.paramArray, p.memOp.flags};
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode n, CUgraph* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_GRAPH, &p) : bad_value) return e;
  return *out = p.graph.graph, CUDA_SUCCESS;
}
EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode n, CUevent* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &p) : bad_value) return e;
  return *out = p.eventRecord.event, CUDA_SUCCESS;
}
EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode n, CUevent* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &p) : bad_value) return e;
  return *out = p.eventWait.event, CUDA_SUCCESS;
}
EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &p) : bad_value) return e;
  std::memcpy(out, &p.alloc, sizeof *out);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode n, CUdeviceptr* out) {
  CUgraphNodeParams p;
  if (const CUresult e = out ? get(n, CU_GRAPH_NODE_TYPE_MEM_FREE, &p) : bad_value) return e;
  return *out = p.free.dptr, CUDA_SUCCESS;
}

EXPORT CUresult cuGraphKernelNodeSetParams(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return p ? set(n, kernel(p)) : bad_value;
}
EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS* p) {
  return p ? set(n, kernel(p)) : bad_value;
}
EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode n, const CUDA_MEMCPY3D* m) {
  return m ? set(n, copy(m, nullptr)) : bad_value;
}
EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS* m) {
  return m ? set(n, memset_of(m, nullptr)) : bad_value;
}
EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode n, const CUDA_HOST_NODE_PARAMS* h) {
  return h ? set(n, host(h)) : bad_value;
}
EXPORT CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode n, const CUDA_BATCH_MEM_OP_NODE_PARAMS* b) {
  return b ? set(n, batch(b)) : bad_value;
}
EXPORT CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode n, CUevent e) {
  return set(n, event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, e));
}
EXPORT CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode n, CUevent e) {
  return set(n, event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, e));
}

EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec x, CUgraphNode n,
                                               const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return p ? set_in_executable(x, n, kernel(p)) : bad_value;
}
EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode n,
                                                  const CUDA_KERNEL_NODE_PARAMS* p) {
  return p ? set_in_executable(x, n, kernel(p)) : bad_value;
}
EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec x, CUgraphNode n, const CUDA_MEMCPY3D* m,
                                               CUcontext c) {
  return m ? set_in_executable(x, n, copy(m, c)) : bad_value;
}
EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec x, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS* m,
                                               CUcontext c) {
  return m ? set_in_executable(x, n, memset_of(m, c)) : bad_value;
}
EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec x, CUgraphNode n, const CUDA_HOST_NODE_PARAMS* h) {
  return h ? set_in_executable(x, n, host(h)) : bad_value;
}
EXPORT CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec x, CUgraphNode n,
                                                   const CUDA_BATCH_MEM_OP_NODE_PARAMS* b) {
  return b ? set_in_executable(x, n, batch(b)) : bad_value;
}
EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec x, CUgraphNode n, CUgraph g) {
  return set_in_executable(x, n, child(g));
}
EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec x, CUgraphNode n, CUevent e) {
  return set_in_executable(x, n, event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, e));
}
EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec x, CUgraphNode n, CUevent e) {
  return set_in_executable(x, n, event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, e));
}

namespace {

KernelNode* kernel_of(CUgraphNode n) { return is_node(n) ? std::get_if<KernelNode>(&n->payload) : nullptr; }

}  // namespace

EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, CUkernelNodeAttrID which,
                                              CUkernelNodeAttrValue* out) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  const KernelNode* k = kernel_of(n);
  if (!k || !out) return bad_value;
  const auto found = k->attributes.find(which);
  *out = found == k->attributes.end() ? CUkernelNodeAttrValue{} : found->second;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode n, CUkernelNodeAttrID which,
                                              const CUkernelNodeAttrValue* value) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  KernelNode* k = kernel_of(n);
  if (!k || !value) return bad_value;
  k->attributes[which] = *value;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  KernelNode* t = kernel_of(to);
  const KernelNode* f = kernel_of(from);
  if (!t || !f) return bad_value;
  t->attributes = f->attributes;
  return CUDA_SUCCESS;
}
