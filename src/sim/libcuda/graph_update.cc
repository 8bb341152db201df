// Changes an executable in place: one node's parameters, or those of all nodes from a graph of the same shape
// (CUDA driver API, cuGraphExecUpdate). The node's kind decides which parameters may not change. If a node
// differs too much, the call names the first such node and changes nothing.
#include <cstring>

#include "sim/libcuda/graph_exec.h"

using namespace carve::sim;

namespace {

const void* function_of(const KernelNode& k) {
  return k.launch.func ? static_cast<const void*>(k.launch.func) : k.launch.kern;
}

bool same_context(const CUgraphNode_st& a, const std::weak_ptr<CUctx_st>& b) {
  return a.context.lock() == b.lock();
}

bool cooperative(const KernelNode& k) {
  const auto found = k.attributes.find(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  return found != k.attributes.end() && found->second.cooperative;
}

// Returns whether a node may take the other one's parameters.
CUgraphExecUpdateResult allowed(const CUgraphNode_st& old, const Payload& fresh,
                                const std::weak_ptr<CUctx_st>& context) {
  if (old.payload.index() != fresh.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (const auto* a = std::get_if<KernelNode>(&old.payload)) {
    const auto& b = std::get<KernelNode>(fresh);
    if (!same_context(old, context)) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (cooperative(*a) != cooperative(b)) return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    return function_of(b) ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED;
  }
  bool good = true;
  if (const auto* a = std::get_if<CopyNode>(&old.payload)) {
    const auto& b = std::get<CopyNode>(fresh);
    good = same_context(old, context) && a->copy.srcMemoryType == b.copy.srcMemoryType &&
           a->copy.dstMemoryType == b.copy.dstMemoryType;
  } else if (const auto* s = std::get_if<SetNode>(&old.payload)) {
    const auto& t = std::get<SetNode>(fresh);
    const bool two_dimensions = s->set.height > 1 || t.set.height > 1;
    good = same_context(old, context) &&
           (!two_dimensions || (s->set.height == t.set.height && s->set.width == t.set.width &&
                                s->set.elementSize == t.set.elementSize));
  } else if (const auto* m = std::get_if<BatchNode>(&old.payload)) {
    const auto& n = std::get<BatchNode>(fresh);
    good = m->operations.size() == n.operations.size();
    for (size_t i = 0; good && i < m->operations.size(); ++i)
      good = m->operations[i].operation == n.operations[i].operation;
  } else if (const auto* x = std::get_if<AllocNode>(&old.payload)) {
    good = x->params.bytesize == std::get<AllocNode>(fresh).params.bytesize;
  } else if (const auto* y = std::get_if<SemaphoreSignalNode>(&old.payload)) {
    good = y->semaphores.size() == std::get<SemaphoreSignalNode>(fresh).semaphores.size();
  } else if (const auto* z = std::get_if<SemaphoreWaitNode>(&old.payload)) {
    good = z->semaphores.size() == std::get<SemaphoreWaitNode>(fresh).semaphores.size();
  } else if (const auto* q = std::get_if<ConditionalNode>(&old.payload)) {
    const auto& r = std::get<ConditionalNode>(fresh);
    good = q->handle == r.handle && q->type == r.type && q->bodies.size() == r.bodies.size();
  }
  return good ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

// Returns whether a node's parameters may be replaced. They may not if they refer to other nodes or are an
// address that the program has already received.
bool replaceable(const Payload& p) {
  return !std::holds_alternative<ChildNode>(p) && !std::holds_alternative<ConditionalNode>(p) &&
         !std::holds_alternative<AllocNode>(p) && !std::holds_alternative<FreeNode>(p);
}

void replace(ExecNode& entry, Payload payload, std::weak_ptr<CUctx_st> context, std::vector<Step> steps) {
  if (!replaceable(entry.node->payload)) return;
  entry.node->payload = std::move(payload);
  entry.node->context = std::move(context);
  entry.steps = std::move(steps);
}

// Compares the entries [first, first + fresh.nodes.size()) of x with all of `fresh`. Returns the index of the
// first entry that differs, or the size if none does.
size_t first_difference(const CUgraphExec_st& x, size_t first, const CUgraphExec_st& fresh,
                        CUgraphExecUpdateResult* why) {
  for (size_t i = 0; i < fresh.nodes.size(); ++i) {
    const CUgraphNode_st& node = *fresh.nodes[i].node;
    *why = allowed(*x.nodes[first + i].node, node.payload, node.context);
    if (*why) return i;
    std::vector<unsigned> inner;  // Without the nodes before the compared part.
    for (unsigned w : x.waits[first + i])
      if (w >= first) inner.push_back(w - static_cast<unsigned>(first));
    *why = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (inner != fresh.waits[i]) return i;
  }
  *why = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return fresh.nodes.size();
}

void take_over(CUgraphExec_st& x, size_t first, CUgraphExec_st& fresh) {
  for (size_t i = 0; i < fresh.nodes.size(); ++i) {
    ExecNode& from = fresh.nodes[i];
    replace(x.nodes[first + i], from.node->payload, from.node->context, std::move(from.steps));
  }
}

CUresult update(CUgraphExec handle, CUgraph g, CUgraphExecUpdateResultInfo* info) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  const auto x = find_executable(handle);
  if (!x || !info) return CUDA_ERROR_INVALID_VALUE;
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  CUgraphExec_st fresh;  // Outlives the lock, which its destructor takes.
  const std::lock_guard executable_lock(x->mutex);
  const GraphLock lock;
  if (!is_graph(g)) return CUDA_ERROR_INVALID_VALUE;
  if (const LayoutError e = lay_out(*g, &fresh); e.code) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  if (fresh.nodes.size() != x->nodes.size()) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  const size_t at = first_difference(*x, 0, fresh, &info->result);
  if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) return take_over(*x, 0, fresh), CUDA_SUCCESS;
  for (const auto& n : g->nodes)
    if (n->id == fresh.nodes[at].node->origin) info->errorNode = n.get();
  return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

// Replaces a child node's graph node by node, as is done for a whole executable.
CUresult set_child(CUgraphExec_st& x, unsigned at, const CUgraphNodeParams& params, CUgraphExec_st& fresh) {
  if (!is_graph(params.graph.graph)) return CUDA_ERROR_INVALID_VALUE;
  if (const LayoutError e = lay_out(*params.graph.graph, &fresh); e.code) return e.code;
  const size_t first = x.nodes[at].first;
  CUgraphExecUpdateResult why = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  if (fresh.nodes.size() != at - first || first_difference(x, first, fresh, &why) != fresh.nodes.size())
    return CUDA_ERROR_INVALID_VALUE;
  take_over(x, first, fresh);
  return CUDA_SUCCESS;
}

}  // namespace

namespace carve::sim {

CUresult set_in_executable(CUgraphExec handle, CUgraphNode n, const CUgraphNodeParams& params) {
  if (const CUresult e = entered()) return e;
  const auto x = find_executable(handle);
  if (!x) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExec_st child;
  const std::lock_guard executable_lock(x->mutex);
  const GraphLock lock;
  if (!is_node(n) || n->type() != params.type) return CUDA_ERROR_INVALID_VALUE;
  const auto found = x->by_source.find(n->id);
  if (found == x->by_source.end()) return CUDA_ERROR_INVALID_VALUE;
  ExecNode& entry = x->nodes[found->second];
  if (params.type == CU_GRAPH_NODE_TYPE_GRAPH) return set_child(*x, found->second, params, child);
  if (!replaceable(entry.node->payload)) return CUDA_ERROR_NOT_SUPPORTED;
  Payload payload;
  std::shared_ptr<CUctx_st> context;
  if (const CUresult e = payload_of(params, &payload, &context)) return e;
  if (auto* k = std::get_if<KernelNode>(&payload))
    k->attributes = std::get<KernelNode>(entry.node->payload).attributes;
  if (allowed(*entry.node, payload, context)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Step> steps;
  if (const CUresult e = steps_of(*context, payload, &steps)) return e;
  replace(entry, std::move(payload), context, std::move(steps));
  return CUDA_SUCCESS;
}

}  // namespace carve::sim

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec x, CUgraph g, CUgraphExecUpdateResultInfo* info) {
  return update(x, g, info);
}
EXPORT CUresult cuGraphExecUpdate(CUgraphExec x, CUgraph g, CUgraphNode* bad, CUgraphExecUpdateResult* why) {
  CUgraphExecUpdateResultInfo info = {};
  const CUresult e = update(x, g, &info);
  if (bad) *bad = info.errorNode;
  if (why) *why = info.result;
  return e;
}
