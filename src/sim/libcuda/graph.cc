// The structure of graphs: creation, cloning, changes and queries. graph_params.cc has the operations of the
// nodes, graph_exec.cc their execution.
#include "sim/libcuda/graph.h"

#include <algorithm>

#include "sim/libcuda/graph_calls.h"

using namespace carve::sim;

namespace carve::sim {
namespace {

struct Graphs {
  std::mutex mutex;
  std::set<CUgraph_st*> graphs;  // All live graphs: the program's, children and bodies.
  std::set<CUgraphNode_st*> nodes;
  std::map<CUgraph_st*, std::shared_ptr<CUgraph_st>> programs;
  std::vector<std::unique_ptr<CUuserObject_st>> dying;
  uint64_t next_id = 1;
};
Graphs& graphs() {
  static auto* all = new Graphs;
  return *all;
}

}  // namespace

GraphLock::GraphLock() { graphs().mutex.lock(); }
GraphLock::~GraphLock() {
  auto dying = std::move(graphs().dying);
  graphs().dying.clear();
  graphs().mutex.unlock();
  for (const auto& object : dying) object->destroy(object->data);
}

bool is_graph(CUgraph g) { return graphs().graphs.contains(g); }
bool is_node(CUgraphNode n) { return graphs().nodes.contains(n); }

CUgraph_st* new_graph() {
  auto g = std::make_shared<CUgraph_st>();
  graphs().programs[g.get()] = g;
  return g.get();
}

CUresult destroy_graph(CUgraph g) {
  return graphs().programs.erase(g) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::shared_ptr<CUgraph_st> take_graph(CUgraph g) {
  const auto found = graphs().programs.find(g);
  if (found == graphs().programs.end()) return nullptr;
  auto taken = std::move(found->second);
  graphs().programs.erase(found);
  return taken;
}

void bury(std::unique_ptr<CUuserObject_st> object) { graphs().dying.push_back(std::move(object)); }

CUresult add_edge(CUgraphNode_st& from, CUgraphNode_st& to, const CUgraphEdgeData* data) {
  if (from.graph != to.graph || &from == &to) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphEdgeData d = data ? *data : CUgraphEdgeData{};
  const auto same = [&](const Edge& e) {
    return e.node == &to && e.data.from_port == d.from_port && e.data.to_port == d.to_port &&
           e.data.type == d.type;
  };
  if (std::ranges::any_of(from.out, same)) return CUDA_ERROR_INVALID_VALUE;
  from.out.push_back({&to, d});
  to.in.push_back({&from, d});
  return CUDA_SUCCESS;
}

CUresult add_node(CUgraph_st& g, const CUgraphNode* dependencies, const CUgraphEdgeData* edges, size_t count,
                  std::weak_ptr<CUctx_st> context, Payload payload, CUgraphNode_st** out) {
  if (count && !dependencies) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    if (!is_node(dependencies[i]) || dependencies[i]->graph != &g) return CUDA_ERROR_INVALID_VALUE;
  auto node = std::make_unique<CUgraphNode_st>();
  node->graph = &g;
  node->id = graphs().next_id++;
  node->context = std::move(context);
  node->payload = std::move(payload);
  for (size_t i = 0; i < count; ++i)
    if (const CUresult e = add_edge(*dependencies[i], *node, edges ? edges + i : nullptr)) {
      for (const Edge& in : node->in)
        std::erase_if(in.node->out, [&](const Edge& x) { return x.node == node.get(); });
      return e;
    }
  *out = node.get();
  graphs().nodes.insert(node.get());
  g.nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

void remove_node(CUgraphNode_st& node) {
  for (const Edge& e : node.in) std::erase_if(e.node->out, [&](const Edge& x) { return x.node == &node; });
  for (const Edge& e : node.out) std::erase_if(e.node->in, [&](const Edge& x) { return x.node == &node; });
  graphs().nodes.erase(&node);
  std::erase_if(node.graph->nodes, [&](const auto& n) { return n.get() == &node; });
}

std::shared_ptr<CUgraph_st> clone_graph(const CUgraph_st& g, bool owned) {
  auto copy = std::make_shared<CUgraph_st>();
  copy->owned = owned;
  copy->conditions = g.conditions;
  for (const auto& [object, count] : g.objects) {
    retain_object(object, count);
    copy->objects[object] = count;
  }
  std::map<const CUgraphNode_st*, CUgraphNode_st*> twin;
  for (const auto& n : g.nodes) {
    Payload payload = n->payload;
    if (auto* child = std::get_if<ChildNode>(&payload)) child->graph = clone_graph(*child->graph, true);
    if (auto* condition = std::get_if<ConditionalNode>(&payload))
      for (size_t i = 0; i < condition->bodies.size(); ++i) {
        condition->bodies[i] = clone_graph(*condition->bodies[i], true);
        condition->handles[i] = condition->bodies[i].get();
      }
    CUgraphNode_st* made = nullptr;
    add_node(*copy, nullptr, nullptr, 0, n->context, std::move(payload), &made);
    made->origin = n->id;
    twin[n.get()] = made;
  }
  for (const auto& n : g.nodes)
    for (const Edge& e : n->in) add_edge(*twin[e.node], *twin[n.get()], &e.data);
  return copy;
}

CUgraphNode_st* find_clone(const CUgraph_st& g, uint64_t origin) {
  for (const auto& n : g.nodes) {
    if (n->origin == origin) return n.get();
    if (const auto* child = std::get_if<ChildNode>(&n->payload))
      if (CUgraphNode_st* found = find_clone(*child->graph, origin)) return found;
    if (const auto* condition = std::get_if<ConditionalNode>(&n->payload))
      for (const auto& body : condition->bodies)
        if (CUgraphNode_st* found = find_clone(*body, origin)) return found;
  }
  return nullptr;
}

}  // namespace carve::sim

// Graphs are created and destroyed while the lock is held.
CUgraph_st::CUgraph_st() : id(graphs().next_id++) { graphs().graphs.insert(this); }
CUgraph_st::~CUgraph_st() {
  graphs().graphs.erase(this);
  for (const auto& n : nodes) graphs().nodes.erase(n.get());
  for (const auto& [object, count] : objects) release_object(object, count);
}

namespace {

CUresult get_list(const std::vector<Edge>& edges, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count,
                  bool data_wanted) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!nodes) return *count = edges.size(), CUDA_SUCCESS;
  // If the caller passes no array for edge data, edges that have data cannot be returned.
  if (!data_wanted || !data)
    for (const Edge& e : edges)
      if (e.data.from_port || e.data.to_port || e.data.type) return CUDA_ERROR_LOSSY_QUERY;
  for (size_t i = 0; i < *count; ++i) {
    nodes[i] = i < edges.size() ? edges[i].node : nullptr;
    if (data) data[i] = i < edges.size() ? edges[i].data : CUgraphEdgeData{};
  }
  *count = std::min(*count, edges.size());
  return CUDA_SUCCESS;
}

CUresult neighbours(CUgraphNode n, bool before, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count,
                    bool data_wanted) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_node(n)) return CUDA_ERROR_INVALID_VALUE;
  return get_list(before ? n->in : n->out, nodes, data, count, data_wanted);
}

CUresult get_edges(CUgraph g, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_graph(g) || !count || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  size_t n = 0;
  for (const auto& node : g->nodes)
    for (const Edge& e : node->out) {
      if (from && n < *count) {
        if (!data && (e.data.from_port || e.data.to_port || e.data.type)) return CUDA_ERROR_LOSSY_QUERY;
        from[n] = node.get();
        to[n] = e.node;
        if (data) data[n] = e.data;
      }
      ++n;
    }
  for (size_t i = n; from && i < *count; ++i) from[i] = to[i] = nullptr;
  *count = from ? std::min(*count, n) : n;
  return CUDA_SUCCESS;
}

CUresult change_edges(CUgraph g, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                      size_t count, bool add) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_graph(g) || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    if (!is_node(from[i]) || !is_node(to[i]) || from[i]->graph != g || to[i]->graph != g)
      return CUDA_ERROR_INVALID_VALUE;
  if (!add && has_memory(*g)) return CUDA_ERROR_NOT_SUPPORTED;
  for (size_t i = 0; i < count; ++i) {
    if (add) {
      if (const CUresult e = add_edge(*from[i], *to[i], data ? data + i : nullptr)) return e;
      continue;
    }
    const auto is = [&](const Edge& e, CUgraphNode other) {
      return e.node == other && (!data || (e.data.from_port == data[i].from_port &&
                                           e.data.to_port == data[i].to_port && e.data.type == data[i].type));
    };
    if (!std::erase_if(from[i]->out, [&](const Edge& e) { return is(e, to[i]); }))
      return CUDA_ERROR_INVALID_VALUE;
    std::erase_if(to[i]->in, [&](const Edge& e) { return is(e, from[i]); });
  }
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
  if (const CUresult e = entered()) return e;
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  *out = new_graph();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph g) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  return destroy_graph(g);
}

EXPORT CUresult cuGraphClone(CUgraph* out, CUgraph original) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!out || !is_graph(original)) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory(*original)) return CUDA_ERROR_NOT_SUPPORTED;
  auto copy = clone_graph(*original, false);
  *out = copy.get();
  graphs().programs[copy.get()] = copy;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!out || !is_node(original) || !is_graph(clone)) return CUDA_ERROR_INVALID_VALUE;
  *out = find_clone(*clone, original->id);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphDestroyNode(CUgraphNode n) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_node(n)) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory(*n->graph)) return CUDA_ERROR_NOT_SUPPORTED;
  remove_node(*n);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType* out) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_node(n) || !out) return CUDA_ERROR_INVALID_VALUE;
  *out = n->type();
  return CUDA_SUCCESS;
}

namespace {

CUresult list_nodes(CUgraph g, CUgraphNode* out, size_t* count, bool roots) {
  if (const CUresult e = entered()) return e;
  const GraphLock lock;
  if (!is_graph(g) || !count) return CUDA_ERROR_INVALID_VALUE;
  size_t n = 0;
  for (const auto& node : g->nodes) {
    if (roots && !node->in.empty()) continue;
    if (out && n < *count) out[n] = node.get();
    ++n;
  }
  for (size_t i = n; out && i < *count; ++i) out[i] = nullptr;
  *count = out ? std::min(*count, n) : n;
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuGraphGetNodes(CUgraph g, CUgraphNode* out, size_t* count) {
  return list_nodes(g, out, count, false);
}
EXPORT CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode* out, size_t* count) {
  return list_nodes(g, out, count, true);
}
EXPORT CUresult cuGraphGetEdges(CUgraph g, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return get_edges(g, from, to, nullptr, count);
}
EXPORT CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                   size_t* count) {
  return get_edges(g, from, to, data, count);
}
EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode n, CUgraphNode* out, size_t* count) {
  return neighbours(n, true, out, nullptr, count, false);
}
EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode n, CUgraphNode* out, CUgraphEdgeData* data,
                                              size_t* count) {
  return neighbours(n, true, out, data, count, true);
}
EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode n, CUgraphNode* out, size_t* count) {
  return neighbours(n, false, out, nullptr, count, false);
}
EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode n, CUgraphNode* out, CUgraphEdgeData* data,
                                                size_t* count) {
  return neighbours(n, false, out, data, count, true);
}
EXPORT CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode* from, const CUgraphNode* to, size_t n) {
  return change_edges(g, from, to, nullptr, n, true);
}
EXPORT CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode* from, const CUgraphNode* to,
                                          const CUgraphEdgeData* data, size_t n) {
  return change_edges(g, from, to, data, n, true);
}
EXPORT CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode* from, const CUgraphNode* to,
                                          size_t n) {
  return change_edges(g, from, to, nullptr, n, false);
}
EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode* from, const CUgraphNode* to,
                                             const CUgraphEdgeData* data, size_t n) {
  return change_edges(g, from, to, data, n, false);
}

EXPORT CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* out, CUgraph g, CUcontext context,
                                               unsigned int start, unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (context && !find_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  const GraphLock lock;
  constexpr unsigned assign_default = 1;
  if (!out || !is_graph(g) || flags > assign_default) return CUDA_ERROR_INVALID_VALUE;
  *out = graphs().next_id++;
  g->conditions[*out] = {flags & assign_default ? start : 0};
  return CUDA_SUCCESS;
}
