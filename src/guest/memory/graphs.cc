// Graphs that allocate. An allocation node, including that of a captured cuMemAllocAsync, takes no memory
// until its graph is uploaded or launched. Then the device's one graph memory pool grows by multiples of 32
// MiB, and keeps its memory until it is trimmed. It is charged like any pool (memory_pool.h). A launch can
// add at most the sum of the graph's allocation nodes, including child graphs. The sum is computed when the
// graph is instantiated. Bodies of conditional nodes cannot allocate (CUDA driver API, "Conditional nodes").
//
// A graph without such nodes has no record. Its launch costs one load in addition to the gate, or nothing if
// this process has no graph with such nodes. A launch cannot be undone, so growth beyond this bound would be
// charged in full; no driver has shown such growth yet.
//
// An executable graph itself takes some device memory for its nodes, which is growth that the agent finds.
#include <sys/mman.h>

#include "guest/launch/gate.h"
#include "guest/memory/location.h"
#include "guest/memory/memory_pool.h"

using namespace carve;
using namespace carve::guest;

namespace {

// Bytes that the graph's allocation nodes take on each device of the slice.
struct Demand {
  uint64_t bytes[shm::max_devices] = {};
  CUdevice ordinal[shm::max_devices] = {};
  bool any = false;
};

// The nodes of one graph, in mmap'd pages because the program may be inside its malloc.
struct Nodes {
  size_t count = 0;
  CUgraphNode* at = nullptr;

  explicit Nodes(CUgraph graph) {
    if (driver<&cuGraphGetNodes>(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return;
    void* pages = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    at = static_cast<CUgraphNode*>(pages);
    mapped_ = bytes();
    if (driver<&cuGraphGetNodes>(graph, at, &count) != CUDA_SUCCESS) count = 0;
  }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;
  ~Nodes() {
    if (at != nullptr) munmap(at, mapped_);
  }

 private:
  size_t bytes() const { return count * sizeof(CUgraphNode); }
  size_t mapped_ = 0;
};

void add(Process& p, Demand& demand, const CUDA_MEM_ALLOC_NODE_PARAMS& node) {
  if (!is_on_device(node.poolProps.location)) return;
  const CUdevice ordinal = device_in(node.poolProps.location);
  const DeviceLookup found = find_device(p, ordinal);
  if (found.result != CUDA_SUCCESS || found.device >= shm::max_devices) return;
  uint64_t& sum = demand.bytes[found.device];
  if (__builtin_add_overflow(sum, rounded_up({node.bytesize}, 2_MiB).count, &sum)) sum = UINT64_MAX;
  demand.ordinal[found.device] = ordinal;
  demand.any = true;
}

// Graphs nest a few levels; no driver accepts more levels than this limit.
void walk(Process& p, CUgraph graph, Demand& demand, unsigned depth = 0) {
  const Nodes nodes(graph);
  for (size_t i = 0; nodes.at != nullptr && i < nodes.count; ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (driver<&cuGraphNodeGetType>(nodes.at[i], &type) != CUDA_SUCCESS) continue;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    CUgraph child = nullptr;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      if (driver<&cuGraphMemAllocNodeGetParams>(nodes.at[i], &params) == CUDA_SUCCESS) add(p, demand, params);
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth < 64) {
      if (driver<&cuGraphChildGraphNodeGetGraph>(nodes.at[i], &child) == CUDA_SUCCESS)
        walk(p, child, demand, depth + 1);
    }
  }
}

// One record per device that the executable graph allocates on. A graph's address is aligned to more than the
// number of devices, so the sum is unique.
uint64_t key_of(CUgraphExec exec, unsigned device) { return reinterpret_cast<uint64_t>(exec) + device; }
static_assert(shm::max_devices <= alignof(max_align_t));

void forget(Process& p, CUgraphExec exec) {
  Record record;
  for (unsigned d = 0; d < p.device_count; ++d)
    if (p.graphs.take(key_of(exec, d), &record)) p.graph_count.fetch_sub(1, std::memory_order_relaxed);
}

void remember(Process& p, CUgraphExec exec, const Demand& demand) {
  forget(p, exec);  // It belongs to an earlier graph that was destroyed unnoticed.
  for (unsigned d = 0; d < p.device_count; ++d) {
    if (demand.bytes[d] == 0) continue;
    Record record = record_of(key_of(exec, d), 0, {demand.bytes[d], static_cast<uint16_t>(d), 0}), previous;
    record.uses = static_cast<uint32_t>(demand.ordinal[d]);
    if (p.graphs.put(record, &previous)) p.graph_count.fetch_add(1, std::memory_order_relaxed);
  }
}

bool nothing_to_undo() { return false; }

// Makes `call`, which may take the demand of each device. Starts with device number `device`.
template <class Call>
CUresult taking(Process& p, const Demand& demand, unsigned device, Call call) {
  while (device < p.device_count && demand.bytes[device] == 0) ++device;
  if (device >= p.device_count) return call();
  Pool* pool = graph_pool_of(p, demand.ordinal[device], device);
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  return growing(
      p, *pool, {demand.bytes[device]},
      [&](const Pool& full) { return has_unused(full, {demand.bytes[device]}); },
      [&] { return taking(p, demand, device + 1, call); }, nothing_to_undo);
}

// `instantiate()` is the driver's call. If `uploads` is set, the call also takes the memory.
template <class Instantiate>
CUresult instantiated(CUgraphExec* exec, CUgraph graph, bool uploads, Instantiate instantiate) {
  Process* p = attached();
  if (p == nullptr || exec == nullptr) return instantiate();
  Demand demand;
  walk(*p, graph, demand);
  const CUresult result = uploads && demand.any ? taking(*p, demand, 0, instantiate) : instantiate();
  if (result == CUDA_SUCCESS && (demand.any || p->graph_count.load(std::memory_order_relaxed) != 0))
    remember(*p, *exec, demand);
  return result;
}

Demand demand_of(Process& p, CUgraphExec exec) {
  Demand demand;
  Record record;
  for (unsigned d = 0; d < p.device_count; ++d) {
    if (!p.graphs.find(key_of(exec, d), &record)) continue;
    demand.bytes[d] = record.bytes;
    demand.ordinal[d] = static_cast<CUdevice>(record.uses);
    demand.any = true;
  }
  return demand;
}

inline bool some_allocate() {
  Process* p = process_page.load(std::memory_order_acquire);
  return p != nullptr && p->graph_count.load(std::memory_order_relaxed) != 0;
}

// `launch()` is the driver's call. A launch within a capture only adds a node.
template <auto IsCapturing, class Launch>
__attribute__((noinline)) CUresult launched(CUgraphExec exec, CUstream stream, Launch launch) {
  Process* p = attached();
  if (p == nullptr) return launch();
  const Demand demand = demand_of(*p, exec);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!demand.any || driver<IsCapturing>(stream, &status) != CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_NONE)
    return launch();
  return taking(*p, demand, 0, launch);
}

template <auto Entry, auto IsCapturing>
__attribute__((noinline)) CUresult paced_out_of_line(CUgraphExec exec, CUstream stream, const Launch& what) {
  return paced_by_waiting(what, [=] {
    const auto launch = [=] { return driver<Entry>(exec, stream); };
    return some_allocate() ? launched<IsCapturing>(exec, stream, launch) : launch();
  });
}

template <auto Entry, auto IsCapturing>
inline CUresult paced(CUgraphExec exec, CUstream stream, uint64_t name) {
  const Launch what = {reinterpret_cast<uint64_t>(exec), 0, 0, ~uint64_t{0}, name};
  if (!is_not_arbitrated() && !try_fast_launch(what))
    return paced_out_of_line<Entry, IsCapturing>(exec, stream, what);
  if (!some_allocate()) return driver<Entry>(exec, stream);
  return launched<IsCapturing>(exec, stream, [=] { return driver<Entry>(exec, stream); });
}

}  // namespace

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return paced<&cuGraphLaunch, &cuStreamIsCapturing>(exec, stream, named(stream));
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return paced<&cuGraphLaunch_ptsz, &cuStreamIsCapturing_ptsz>(exec, stream, named(stream, true));
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  if (!some_allocate()) return driver<&cuGraphUpload>(exec, stream);
  return launched<&cuStreamIsCapturing>(exec, stream, [=] { return driver<&cuGraphUpload>(exec, stream); });
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  if (!some_allocate()) return driver<&cuGraphUpload_ptsz>(exec, stream);
  return launched<&cuStreamIsCapturing_ptsz>(exec, stream,
                                             [=] { return driver<&cuGraphUpload_ptsz>(exec, stream); });
}

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                            size_t size) {
  return instantiated(exec, graph, false,
                      [=] { return driver<&cuGraphInstantiate>(exec, graph, error_node, log, size); });
}

CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                               size_t size) {
  return instantiated(exec, graph, false,
                      [=] { return driver<&cuGraphInstantiate_v2>(exec, graph, error_node, log, size); });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return instantiated(exec, graph, (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0,
                      [=] { return driver<&cuGraphInstantiateWithFlags>(exec, graph, flags); });
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const bool uploads = params != nullptr && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  return instantiated(exec, graph, uploads,
                      [=] { return driver<&cuGraphInstantiateWithParams>(exec, graph, params); });
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const bool uploads = params != nullptr && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  return instantiated(exec, graph, uploads,
                      [=] { return driver<&cuGraphInstantiateWithParams_ptsz>(exec, graph, params); });
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  if (Process* p = attached(); p != nullptr && some_allocate()) forget(*p, exec);
  const CUresult result = driver<&cuGraphExecDestroy>(exec);
  synchronized();
  return result;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  const CUresult result = driver<&cuDeviceGraphMemTrim>(device);
  synchronized();
  return result;
}
