#include <map>
#include <vector>

#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

constexpr uint64_t granule = 32 * MiB;

// A graph is a list of nodes: an allocation of some bytes, a child graph, or a kernel.
struct Node {
  uint64_t bytes = 0;
  uint64_t child = 0;
};
std::map<uint64_t, std::vector<Node>>* graphs = nullptr;
uint64_t reserved = 0, used_now = 0, launches = 0;

const Node& node_of(CUgraphNode n) {
  const auto number = reinterpret_cast<uint64_t>(n);
  return (*graphs)[number >> 16][number & 0xffff];
}
uint64_t bytes_of(uint64_t graph) {
  uint64_t sum = 0;
  for (const Node& n : (*graphs)[graph]) sum += n.child != 0 ? bytes_of(n.child) : n.bytes;
  return sum;
}
CUgraph graph(uint64_t id) { return reinterpret_cast<CUgraph>(id); }
CUresult go(CUgraphExec exec) {
  const uint64_t needs = bytes_of(reinterpret_cast<uint64_t>(exec) >> 8);
  ++launches;
  if (reserved < used_now + needs)
    reserved += (used_now + needs - reserved + granule - 1) / granule * granule;
  return CUDA_SUCCESS;
}

class Graphs : public DriverTest {
 protected:
  Graphs() {
    graphs = &graphs_;
    reserved = used_now = launches = 0;
    on<&cuGraphGetNodes>([](CUgraph g, CUgraphNode* nodes, size_t* count) {
      const auto id = reinterpret_cast<uint64_t>(g);
      for (size_t i = 0; nodes != nullptr && i < (*graphs)[id].size(); ++i)
        nodes[i] = reinterpret_cast<CUgraphNode>(id << 16 | i);
      *count = (*graphs)[id].size();
      return CUDA_SUCCESS;
    });
    on<&cuGraphNodeGetType>([](CUgraphNode n, CUgraphNodeType* type) {
      *type = node_of(n).child != 0   ? CU_GRAPH_NODE_TYPE_GRAPH
              : node_of(n).bytes != 0 ? CU_GRAPH_NODE_TYPE_MEM_ALLOC
                                      : CU_GRAPH_NODE_TYPE_KERNEL;
      return CUDA_SUCCESS;
    });
    on<&cuGraphMemAllocNodeGetParams>([](CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
      params->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
      params->bytesize = node_of(n).bytes;
      return CUDA_SUCCESS;
    });
    on<&cuGraphChildGraphNodeGetGraph>([](CUgraphNode n, CUgraph* out) {
      *out = graph(node_of(n).child);
      return CUDA_SUCCESS;
    });
    on<&cuGraphInstantiateWithFlags>([](CUgraphExec* out, CUgraph g, unsigned long long) {
      *out = reinterpret_cast<CUgraphExec>(reinterpret_cast<uint64_t>(g) << 8);
      return CUDA_SUCCESS;
    });
    on<&cuGraphLaunch>([](CUgraphExec e, CUstream) { return go(e); });
    on<&cuGraphUpload>([](CUgraphExec e, CUstream) { return go(e); });
    on<&cuGraphExecDestroy>([](CUgraphExec) { return CUDA_SUCCESS; });
    on<&cuStreamIsCapturing>([](CUstream, CUstreamCaptureStatus* status) {
      *status = CU_STREAM_CAPTURE_STATUS_NONE;
      return CUDA_SUCCESS;
    });
    on<&cuDeviceGetGraphMemAttribute>([](CUdevice, CUgraphMem_attribute attribute, void* value) {
      *static_cast<cuuint64_t*>(value) =
          attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? reserved : used_now;
      return CUDA_SUCCESS;
    });
    on<&cuDeviceGraphMemTrim>([](CUdevice) {
      reserved = (used_now + granule - 1) / granule * granule;
      return CUDA_SUCCESS;
    });
  }
  CUgraphExec instantiated(uint64_t id) {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph(id), 0), CUDA_SUCCESS);
    return exec;
  }
  std::map<uint64_t, std::vector<Node>> graphs_;
};

TEST_F(Graphs, are_charged_for_their_allocations_from_launch_to_trim) {
  Attached slice(1, 100 * MiB);
  graphs_[1] = {{}, {10 * MiB, 0}, {40 * MiB, 0}};
  CUgraphExec exec = instantiated(1);
  EXPECT_EQ(slice.used(), 0u);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * granule);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS)
      << "the pool's memory is sufficient for the second launch";
  EXPECT_EQ(slice.used(), 2 * granule);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Graphs, are_charged_for_allocations_in_a_locality_domain) {
  Attached slice(1, 100 * MiB);
  on<&cuGraphMemAllocNodeGetParams>([](CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
    params->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 1 << 8};
    params->bytesize = node_of(n).bytes;
    return CUDA_SUCCESS;
  });
  graphs_[1] = {{10 * MiB, 0}};
  graphs_[2] = {{120 * MiB, 0}};
  EXPECT_EQ(cuGraphLaunch(instantiated(1), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), granule);
  EXPECT_EQ(cuGraphLaunch(instantiated(2), nullptr), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Graphs, are_not_launched_over_the_quota) {
  Attached slice(1, 100 * MiB);
  graphs_[1] = {{120 * MiB, 0}};
  CUgraphExec exec = instantiated(1);
  EXPECT_EQ(cuGraphUpload(exec, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(launches, 0u);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Graphs, count_the_allocations_of_child_graphs) {
  Attached slice(1, 100 * MiB);
  graphs_[1] = {{0, 2}, {0, 3}};
  graphs_[2] = {{33 * MiB, 0}};
  graphs_[3] = {{0, 2}, {}};
  EXPECT_EQ(cuGraphLaunch(instantiated(1), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(reserved, 3 * granule);
  EXPECT_EQ(slice.used(), 3 * granule);
}

TEST_F(Graphs, release_unused_memory_to_an_allocation_that_needs_it) {
  Attached slice(1, 100 * MiB);
  graphs_[1] = {{80 * MiB, 0}};
  EXPECT_EQ(cuGraphLaunch(instantiated(1), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 3 * granule);
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAlloc_v2(&p, 60 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 60 * MiB);
}

TEST_F(Graphs, without_allocations_are_launched_even_at_the_quota) {
  Attached slice(1, 1);
  graphs_[1] = {{}, {}};
  EXPECT_EQ(cuGraphLaunch(instantiated(1), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.process->graph_count, 0u);
}

TEST_F(Graphs, are_new_graphs_if_an_address_is_reused) {
  Attached slice(1, 10 * MiB);
  graphs_[1] = {{80 * MiB, 0}};
  CUgraphExec exec = instantiated(1);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(slice.process->graph_count, 0u);
  graphs_[1] = {{}};
  EXPECT_EQ(cuGraphLaunch(instantiated(1), nullptr), CUDA_SUCCESS);
}

}  // namespace
}  // namespace carve::guest
