// cuGraphDebugDotPrint: prints a graph in Graphviz's DOT language.
#include <cstdio>

#include "sim/libcuda/graph.h"
#include "sim/libcuda/module.h"

using namespace carve::sim;

namespace {

constexpr const char* kind_names[] = {
    "KERNEL",       "MEMCPY",       "MEMSET",           "HOST",           "GRAPH",     "EMPTY",
    "WAIT_EVENT",   "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE",
    "BATCH_MEM_OP", "CONDITIONAL"};
static_assert(std::size(kind_names) == std::variant_size_v<Payload>);

void print(std::FILE* out, const CUgraph_st& g, unsigned flags) {
  for (const auto& n : g.nodes) {
    std::fprintf(out, "  \"node%llu\" [shape=\"box\", label=\"%s", static_cast<unsigned long long>(n->id),
                 kind_names[n->payload.index()]);
    if (flags & CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES) std::fprintf(out, "\\n%p", static_cast<void*>(n.get()));
    if (const auto* k = std::get_if<KernelNode>(&n->payload)) {
      const void* f = k->launch.func ? static_cast<const void*>(k->launch.func) : k->launch.kern;
      if (const CUfunc_st* function = find_function(f))
        std::fprintf(out, "\\n%s", function->image.name.c_str());
      if (flags & (CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE | CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
        std::fprintf(out, "\\ngrid %u,%u,%u block %u,%u,%u shared %u", k->launch.gridDimX, k->launch.gridDimY,
                     k->launch.gridDimZ, k->launch.blockDimX, k->launch.blockDimY, k->launch.blockDimZ,
                     k->launch.sharedMemBytes);
    }
    std::fprintf(out, "\"];\n");
    for (const Edge& e : n->out)
      std::fprintf(out, "  \"node%llu\" -> \"node%llu\";\n", static_cast<unsigned long long>(n->id),
                   static_cast<unsigned long long>(e.node->id));
    if (const auto* child = std::get_if<ChildNode>(&n->payload)) {
      std::fprintf(out, "  subgraph \"cluster_%llu\" {\n", static_cast<unsigned long long>(n->id));
      print(out, *child->graph, flags);
      std::fprintf(out, "  }\n");
    }
  }
}

}  // namespace

EXPORT CUresult cuGraphDebugDotPrint(CUgraph g, const char* path, unsigned int flags) {
  if (const CUresult e = entered()) return e;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  if (!is_graph(g)) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* out = std::fopen(path, "we");
  if (!out) return CUDA_ERROR_OPERATING_SYSTEM;
  std::fprintf(out, "digraph graph_%llu {\n", static_cast<unsigned long long>(g->id));
  print(out, *g, flags);
  std::fprintf(out, "}\n");
  return std::fclose(out) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
