// Instantiating graphs.
#include "sim/libcuda/graph_exec.h"

#include <algorithm>

#include "sim/libcuda/graph_space.h"

using namespace carve::sim;

namespace carve::sim {
namespace {

std::map<CUgraphExec_st*, std::shared_ptr<CUgraphExec_st>>& executables() {
  static auto* all = new std::map<CUgraphExec_st*, std::shared_ptr<CUgraphExec_st>>;
  return *all;
}

// Walks a graph, its child graphs and the bodies that will run.
class Layout {
 public:
  explicit Layout(CUgraphExec_st* x) : x_(x) {}

  LayoutError whole(const CUgraph_st& g) {
    std::vector<unsigned> ends;
    LayoutError e = expand(g, {}, &ends);
    for (const auto& [handle, used] : used_)
      if (!used && !e.code)
        e = {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, 0};
    return e;
  }

 private:
  LayoutError expand(const CUgraph_st& g, const std::vector<unsigned>& before, std::vector<unsigned>* ends) {
    x_->holds_objects |= !g.objects.empty();
    for (const auto& [handle, condition] : g.conditions) {
      start_[handle] = condition.start;
      used_.emplace(handle, false);
    }
    std::map<const CUgraphNode_st*, unsigned> number;
    for (const auto& n : g.nodes) number.emplace(n.get(), static_cast<unsigned>(number.size()));
    Waits inner(g.nodes.size());
    for (unsigned i = 0; i < inner.size(); ++i)
      for (const Edge& e : g.nodes[i]->in) inner[i].push_back(number[e.node]);
    std::vector<unsigned> order;
    if (!order_of(inner, &order))
      return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, 0};
    std::vector<unsigned> at(g.nodes.size());
    for (unsigned i : order) {
      std::vector<unsigned> waits;
      for (unsigned w : inner[i]) waits.push_back(at[w]);
      if (inner[i].empty()) waits = before;
      if (const LayoutError e = place(*g.nodes[i], std::move(waits)); e.code) return e;
      at[i] = static_cast<unsigned>(x_->nodes.size() - 1);
    }
    for (unsigned i : ends_of(inner)) ends->push_back(at[i]);
    return {};
  }

  LayoutError place(CUgraphNode_st& n, std::vector<unsigned> waits) {
    ExecNode entry;
    entry.node = &n;
    entry.first = static_cast<unsigned>(x_->nodes.size());
    const CUgraph_st* inside = nullptr;
    if (const auto* child = std::get_if<ChildNode>(&n.payload)) inside = child->graph.get();
    if (const auto* condition = std::get_if<ConditionalNode>(&n.payload)) inside = chosen(*condition);
    if (inside) {
      std::vector<unsigned> ends;
      if (const LayoutError e = expand(*inside, waits, &ends); e.code) return e;
      if (!ends.empty()) waits = std::move(ends);
    } else if (const auto c = n.context.lock()) {
      if (const CUresult e = steps_of(*c, n.payload, &entry.steps))
        return {e, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, n.origin};
    } else {
      return {CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_GRAPH_INSTANTIATE_ERROR, n.origin};
    }
    x_->by_source[n.origin] = static_cast<unsigned>(x_->nodes.size());
    x_->nodes.push_back(std::move(entry));
    x_->waits.push_back(std::move(waits));
    return {};
  }

  // Only kernels can set a handle, and kernels are not executed, so the handle keeps the value from the start
  // of the launch. A WHILE that starts with true would loop until a kernel changes the value; here its body
  // runs once.
  const CUgraph_st* chosen(const ConditionalNode& c) {
    used_[c.handle] = true;
    const unsigned value = start_[c.handle];
    switch (c.type) {
      case CU_GRAPH_COND_TYPE_IF:
        if (value) return c.bodies[0].get();
        return c.bodies.size() > 1 ? c.bodies[1].get() : nullptr;
      case CU_GRAPH_COND_TYPE_WHILE: return value ? c.bodies[0].get() : nullptr;
      case CU_GRAPH_COND_TYPE_SWITCH: return value < c.bodies.size() ? c.bodies[value].get() : nullptr;
    }
    return nullptr;
  }

  CUgraphExec_st* x_;
  std::map<CUgraphConditionalHandle, unsigned> start_;
  std::map<CUgraphConditionalHandle, bool> used_;
};

// Returns the memory that the nodes allocate, and the part of it that they free themselves.
GraphNeeds needs_of(const CUgraphExec_st& x) {
  GraphNeeds needs;
  std::map<CUdeviceptr, NodeSpan> here;
  for (unsigned i = 0; i < x.nodes.size(); ++i)
    if (const auto* a = std::get_if<AllocNode>(&x.nodes[i].node->payload)) {
      needs.blocks.push_back(a->block);
      here[a->block->address] = {i, 0, a->block->bytes};
    }
  for (unsigned i = 0; i < x.nodes.size(); ++i)
    if (const auto* f = std::get_if<FreeNode>(&x.nodes[i].node->payload)) {
      const auto own = here.find(f->address);
      if (own == here.end())
        needs.frees.push_back({i, f->address});
      else
        own->second.free = i;
    }
  std::map<unsigned, std::vector<NodeSpan>> spans;  // By device.
  for (const auto& b : needs.blocks)
    if (const NodeSpan& s = here[b->address]; s.free)  // An allocation comes before its free.
      spans[b->device].push_back(s);
    else
      needs.lasting.push_back(b);
  for (const auto& [device, list] : spans)
    needs.temporary[device] = space_of(x.waits, list, memory_block_bytes);
  return needs;
}

}  // namespace

LayoutError lay_out(const CUgraph_st& g, CUgraphExec_st* x) {
  x->image = clone_graph(g, true);
  const LayoutError e = Layout(x).whole(*x->image);
  x->lanes = lanes_of(x->waits, max_lanes);
  x->ends = ends_of(x->waits);
  if (!e.code) x->needs = needs_of(*x);
  return e;
}

std::shared_ptr<CUgraphExec_st> find_executable(CUgraphExec handle) {
  const GraphLock lock;
  const auto found = executables().find(handle);
  return found == executables().end() ? nullptr : found->second;
}

}  // namespace carve::sim

// Called without the lock, because user objects of the image may lose their last reference.
CUgraphExec_st::~CUgraphExec_st() {
  if (claimed) unclaim_blocks(needs, this);
  const GraphLock lock;
  image.reset();
}

namespace {

constexpr unsigned long long instantiate_flags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult instantiate(CUgraphExec* out, CUgraph g, unsigned long long flags, CUgraphNode* bad,
                     CUgraphInstantiateResult* reason) {
  std::shared_ptr<CUctx_st> c;
  if (bad) *bad = nullptr;
  if (reason) *reason = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (const CUresult e = entered()) return e;
  if (flags & ~instantiate_flags) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = current(&c)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  // No kernel is executed that could launch a graph.
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
    if (reason) *reason = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    return unsupported("cuGraphInstantiate for launches from the device");
  }
  auto x = std::make_shared<CUgraphExec_st>();
  x->flags = flags;
  LayoutError e;
  {
    const GraphLock lock;
    if (!is_graph(g)) return CUDA_ERROR_INVALID_VALUE;
    e = lay_out(*g, x.get());
    if (bad && e.code)
      for (const auto& n : g->nodes)
        if (n->id == e.source) *bad = n.get();
    if (reason) *reason = e.reason;
    if (!e.code) e.code = claim_blocks(x->needs);
    x->claimed = !e.code;
    if (!e.code) executables()[x.get()] = x;
  }
  if (e.code) return e.code;
  *out = x.get();
  return CUDA_SUCCESS;
}

CUresult instantiate_with(CUgraphExec* out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS* p, bool own) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = instantiate(out, g, p->flags, &p->hErrNode_out, &p->result_out)) return e;
  if (!(p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) return CUDA_SUCCESS;
  return upload(find_executable(*out), own ? per_thread(p->hUploadStream) : p->hUploadStream);
}

// Returns whether a node can be disabled. Only nodes that compute, copy or set can.
CUresult switchable(CUgraphExec handle, CUgraphNode n, std::shared_ptr<CUgraphExec_st>* x, unsigned* at) {
  if (const CUresult e = entered()) return e;
  *x = find_executable(handle);
  const GraphLock lock;
  if (!*x || !is_node(n)) return CUDA_ERROR_INVALID_VALUE;
  const auto found = (*x)->by_source.find(n->id);
  if (found == (*x)->by_source.end() || n->type() > CU_GRAPH_NODE_TYPE_MEMSET)
    return CUDA_ERROR_INVALID_VALUE;
  *at = found->second;
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph g, unsigned long long flags) {
  return flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? CUDA_ERROR_INVALID_VALUE  // An upload needs a stream.
                                                    : instantiate(out, g, flags, nullptr, nullptr);
}
EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph g, CUgraphNode* bad, char* log,
                                      size_t bytes) {
  if (log && bytes) *log = '\0';
  return instantiate(out, g, 0, bad, nullptr);
}
EXPORT CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph g, CUgraphNode* bad, char* log, size_t bytes) {
  return cuGraphInstantiate_v2(out, g, bad, log, bytes);
}
EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  return instantiate_with(out, g, p, false);
}
EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph g,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  return instantiate_with(out, g, p, true);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec handle) {
  if (const CUresult e = entered()) return e;
  std::shared_ptr<CUgraphExec_st> dying;
  {
    const GraphLock lock;
    const auto found = executables().find(handle);
    if (found == executables().end()) return CUDA_ERROR_INVALID_VALUE;
    dying = std::move(found->second);
    executables().erase(found);
  }
  return CUDA_SUCCESS;  // Running launches end by themselves.
}

EXPORT CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* out) {
  if (const CUresult e = entered()) return e;
  const auto x = find_executable(handle);
  if (!x || !out) return CUDA_ERROR_INVALID_VALUE;
  *out = x->flags;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode n, unsigned int enabled) {
  std::shared_ptr<CUgraphExec_st> x;
  unsigned at = 0;
  if (const CUresult e = switchable(handle, n, &x, &at)) return e;
  const std::lock_guard lock(x->mutex);
  x->nodes[at].enabled = enabled != 0;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode n, unsigned int* enabled) {
  std::shared_ptr<CUgraphExec_st> x;
  unsigned at = 0;
  if (const CUresult e = switchable(handle, n, &x, &at)) return e;
  if (!enabled) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(x->mutex);
  *enabled = x->nodes[at].enabled;
  return CUDA_SUCCESS;
}
