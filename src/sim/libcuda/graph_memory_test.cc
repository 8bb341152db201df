// The memory of graphs through the real library: when it is taken, how it is shared and when it is released.
#include "sim/libcuda/graph_fixture.h"

namespace carve::sim {
namespace {

CUDA_MEM_ALLOC_NODE_PARAMS of_size(size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS p = {};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.bytesize = bytes;
  return p;
}
CUdeviceptr alloc_node(CUgraph g, size_t bytes, CUgraphNode* node,
                       const std::vector<CUgraphNode>& after = {}) {
  CUDA_MEM_ALLOC_NODE_PARAMS p = of_size(bytes);
  OK(CU(cuGraphAddMemAllocNode)(node, g, after.data(), after.size(), &p));
  return p.dptr;
}
CUgraphNode free_node(CUgraph g, CUdeviceptr p, const std::vector<CUgraphNode>& after) {
  CUgraphNode node = nullptr;
  OK(CU(cuGraphAddMemFreeNode)(&node, g, after.data(), after.size(), p));
  return node;
}
uint64_t attribute(CUgraphMem_attribute which) {
  cuuint64_t value = 0;
  OK(CU(cuDeviceGetGraphMemAttribute)(0, which, &value));
  return value;
}
uint64_t used() { return attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT); }
uint64_t reserved() { return attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT); }

TEST_F(DriverTest, an_allocation_node_gets_its_address_at_creation_and_its_memory_at_launch) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              CUgraph g = new_graph();
              CUgraphNode made;
              const CUdeviceptr p = alloc_node(g, 40 * MiB, &made);
              REQUIRE(p != 0);
              const CUDA_MEMSET_NODE_PARAMS fill = {p, 0, 7, 1, 40 * MiB, 1};
              CUgraphNode set;
              OK(CU(cuGraphAddMemsetNode)(&set, g, &made, 1, &fill, nullptr));
              const CUgraphExec x = instantiate(g);
              OK(CU(cuGraphDestroy)(g));
              REQUIRE(free_now() == before && reserved() == 0);
              OK(CU(cuGraphLaunch)(x, nullptr));
              OK(CU(cuCtxSynchronize)());
              REQUIRE(free_now() == before - 64 * MiB);
              REQUIRE(reserved() == 64 * MiB && used() == 40 * MiB);
              unsigned char last = 0;
              OK(CU(cuMemcpyDtoH_v2)(&last, p + 40 * MiB - 1, 1));
              REQUIRE(last == 7);
              // The memory now belongs to the program and outlives its graph.
              OK(CU(cuGraphExecDestroy)(x));
              OK(CU(cuDeviceGraphMemTrim)(0));
              REQUIRE(reserved() == 64 * MiB && free_now() == before - 64 * MiB);
              OK(CU(cuMemFree_v2)(p));
              REQUIRE(CU(cuMemFree_v2)(p) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(free_now() == before - 64 * MiB);
              OK(CU(cuDeviceGraphMemTrim)(0));
              REQUIRE(free_now() == before && reserved() == 0 && used() == 0);
              REQUIRE(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) == 64 * MiB);
              cuuint64_t zero = 0, one = 1;
              OK(CU(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
              REQUIRE(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) == 0);
              REQUIRE(CU(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &one) ==
                      CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero) ==
                      CUDA_ERROR_INVALID_VALUE);
            }));
}

TEST_F(DriverTest, memory_freed_in_a_graph_is_reused_by_later_nodes_and_graphs_of_the_stream) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              // Two allocations of 30 MiB; the first is freed before the second is made.
              const auto two = [&] {
                CUgraph g = new_graph();
                CUgraphNode a, b;
                const CUdeviceptr p = alloc_node(g, 30 * MiB, &a);
                const CUgraphNode freed = free_node(g, p, {kernel_node(g, f, 5 * ms, {a})});
                const CUdeviceptr q = alloc_node(g, 30 * MiB, &b, {freed});
                free_node(g, q, {b});
                return instantiate(g);
              };
              const CUgraphExec x = two(), y = two();
              CUstream s = stream(), t = stream();
              const StreamBlocker blocker;
              blocker.close_both(s, t);
              OK(CU(cuGraphUpload)(x, s));
              REQUIRE(used() == 30 * MiB && reserved() == 32 * MiB);
              OK(CU(cuGraphLaunch)(x, s));
              OK(CU(cuGraphLaunch)(x, s));  // The memory of the first launch has been freed.
              OK(CU(cuGraphLaunch)(y, s));
              REQUIRE(used() == 30 * MiB);
              OK(CU(cuGraphLaunch)(y, t));  // May run in parallel with the other graphs.
              REQUIRE(used() == 60 * MiB && reserved() == 64 * MiB);
              OK(CU(cuDeviceGraphMemTrim)(0));
              REQUIRE(reserved() == 64 * MiB);  // Both chunks are in use.
              blocker.open();
              OK(CU(cuCtxSynchronize)());
              REQUIRE(used() == 60 * MiB);
              OK(CU(cuDeviceGraphMemTrim)(0));
              REQUIRE(reserved() == 0);
              OK(CU(cuGraphLaunch)(x, s));
              REQUIRE(reserved() == 32 * MiB);
              OK(CU(cuCtxSynchronize)());
              OK(CU(cuGraphExecDestroy)(x));
              OK(CU(cuGraphExecDestroy)(y));
              REQUIRE(used() == 0);
            }));
}

TEST_F(DriverTest, a_graph_can_be_relaunched_only_if_its_leftover_memory_is_freed) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = stream();
              CUgraph g = new_graph(), freeing = new_graph();
              CUgraphNode a;
              const CUdeviceptr p = alloc_node(g, 10 * MiB, &a);
              free_node(freeing, p, {});
              const CUgraphExec x = instantiate(g), y = instantiate(freeing);
              REQUIRE(CU(cuGraphLaunch)(y, s) == CUDA_ERROR_INVALID_VALUE);  // The memory does not exist yet.
              for (int i = 0; i < 3; ++i) {
                OK(CU(cuGraphLaunch)(x, s));
                REQUIRE(CU(cuGraphLaunch)(x, s) == CUDA_ERROR_INVALID_VALUE);
                OK(i == 1 ? CU(cuMemFreeAsync)(p, s) : CU(cuGraphLaunch)(y, s));
                REQUIRE(CU(cuMemFreeAsync)(p, s) == CUDA_ERROR_INVALID_VALUE);
                REQUIRE(used() == 10 * MiB);
              }
              OK(CU(cuStreamSynchronize)(s));
              CUgraphExec second = nullptr;
              REQUIRE(CU(cuGraphInstantiateWithFlags)(&second, g, 0) == CUDA_ERROR_NOT_SUPPORTED);
              OK(CU(cuGraphExecDestroy)(x));
              CUgraphExec again = nullptr;
              OK(CU(cuGraphInstantiateWithFlags)(&again, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
              for (int i = 0; i < 3; ++i) OK(CU(cuGraphLaunch)(again, s));
              REQUIRE(used() == 10 * MiB && reserved() == 32 * MiB);
            }));
}

TEST_F(DriverTest, captured_allocations_become_nodes_and_foreign_memory_cannot_be_freed_in_a_capture) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = stream();
              uint32_t* host = pinned();
              const size_t before = free_now();
              CUdeviceptr p = 0, q = 0;
              OK(CU(cuStreamBeginCapture_v2)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
              OK(CU(cuMemAllocAsync)(&p, 100 * MiB, s));
              OK(CU(cuMemsetD32Async)(p, 4711, 16, s));
              OK(CU(cuMemcpyDtoHAsync_v2)(host, p, 64, s));
              OK(CU(cuMemFreeAsync)(p, s));
              OK(CU(cuMemAllocAsync)(&q, MiB, s));
              CUgraph g = nullptr;
              OK(CU(cuStreamEndCapture)(s, &g));
              REQUIRE(free_now() == before);
              size_t count = 0;
              OK(CU(cuGraphGetNodes)(g, nullptr, &count));
              REQUIRE(count == 5);
              OK(CU(cuGraphLaunch)(instantiate(g), s));
              OK(CU(cuStreamSynchronize)(s));
              REQUIRE(host[0] == 4711 && used() == 102 * MiB && reserved() == 128 * MiB);
              REQUIRE(free_now() == before - 128 * MiB);
              OK(CU(cuMemFreeAsync)(q, s));
              CUdeviceptr plain = 0;
              OK(CU(cuMemAllocAsync)(&plain, MiB, s));
              OK(CU(cuStreamBeginCapture_v2)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
              REQUIRE(CU(cuMemFreeAsync)(plain, s) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuStreamEndCapture)(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            }));
}

TEST_F(DriverTest, a_launch_at_the_limit_takes_memory_of_idle_graphs_or_fails) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = stream(), t = stream();
              const size_t most = free_now() / (64 * MiB) * (64 * MiB);
              const auto of = [&](size_t bytes) {
                CUgraph g = new_graph();
                CUgraphNode a;
                const CUdeviceptr p = alloc_node(g, bytes, &a);
                free_node(g, p, {a});
                return instantiate(g);
              };
              const CUgraphExec large = of(most), half = of(most / 2), more = of(most + 64 * MiB);
              OK(CU(cuGraphLaunch)(large, s));
              REQUIRE(CU(cuGraphLaunch)(more, t) == CUDA_ERROR_OUT_OF_MEMORY);
              REQUIRE(CU(cuGraphUpload)(more, t) == CUDA_ERROR_OUT_OF_MEMORY);
              OK(CU(cuStreamSynchronize)(s));
              OK(CU(cuGraphLaunch)(half, t));  // Takes the memory that the first graph no longer uses.
              OK(CU(cuGraphLaunch)(half, t));
              REQUIRE(reserved() == most && used() == most / 2);
              OK(CU(cuStreamSynchronize)(t));
              OK(CU(cuDeviceGraphMemTrim)(0));
              REQUIRE(reserved() == 0);
            }));
}

TEST_F(DriverTest, unsupported_operations_on_graphs_with_memory_are_rejected) {
  EXPECT_EQ(0, run([] {
              begin();
              CUgraph g = new_graph(), other = new_graph();
              CUgraphNode a, node;
              const CUdeviceptr p = alloc_node(g, MiB, &a);
              const CUgraphNode freed = free_node(g, p, {a});
              const auto unsupported = CUDA_ERROR_NOT_SUPPORTED;
              const auto invalid = CUDA_ERROR_INVALID_VALUE;
              REQUIRE(CU(cuGraphAddMemFreeNode)(&node, g, nullptr, 0, p) == invalid);
              REQUIRE(CU(cuGraphAddMemFreeNode)(&node, g, nullptr, 0, p + 512) == invalid);
              REQUIRE(CU(cuGraphClone)(&other, g) == unsupported);
              REQUIRE(CU(cuGraphAddChildGraphNode)(&node, other, nullptr, 0, g) == unsupported);
              REQUIRE(CU(cuGraphDestroyNode)(freed) == unsupported);
              REQUIRE(CU(cuGraphRemoveDependencies)(g, &a, &freed, 1) == unsupported);
              CUDA_MEM_ALLOC_NODE_PARAMS wrong = of_size(0);
              REQUIRE(CU(cuGraphAddMemAllocNode)(&node, g, nullptr, 0, &wrong) == invalid);
              wrong = of_size(MiB);
              wrong.poolProps.location.id = 9;
              REQUIRE(CU(cuGraphAddMemAllocNode)(&node, g, nullptr, 0, &wrong) == invalid);
              CUDA_MEM_ALLOC_NODE_PARAMS told = {};
              OK(CU(cuGraphMemAllocNodeGetParams)(a, &told));
              REQUIRE(told.dptr == p && told.bytesize == MiB && told.poolProps.location.id == 0);
              CUdeviceptr freed_address = 0;
              OK(CU(cuGraphMemFreeNodeGetParams)(freed, &freed_address));
              REQUIRE(freed_address == p);
            }));
}

}  // namespace
}  // namespace carve::sim
