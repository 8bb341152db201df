// Graphs through the real library: their model time, their changes, and rejected calls.
#include "sim/libcuda/graph_fixture.h"

namespace carve::sim {
namespace {

TEST_F(DriverTest, a_chain_takes_the_sum_of_its_kernels_and_branches_run_in_parallel) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUgraph g = new_graph();
              // a -> (b, c, d) -> e. Each kernel takes 5 ms on a quarter of the device: 15 ms in this shape,
              // 25 ms in a chain.
              const CUgraphNode a = kernel_node(g, f, 5 * ms, {}, 108);
              const CUgraphNode b = kernel_node(g, f, 5 * ms, {a}, 108);
              const CUgraphNode c = kernel_node(g, f, 5 * ms, {a}, 108);
              const CUgraphNode d = kernel_node(g, f, 5 * ms, {a}, 108);
              kernel_node(g, f, 5 * ms, {b, c, d}, 108);
              const float side_by_side = ms_of_launch(g);
              REQUIRE(side_by_side > 14.99 && side_by_side < 15.1);
              CUgraph chain = new_graph();
              CUgraphNode last = nullptr;
              for (int i = 0; i < 5; ++i)
                last =
                    kernel_node(chain, f, 5 * ms, last ? std::vector{last} : std::vector<CUgraphNode>{}, 108);
              const float one_after_another = ms_of_launch(chain);
              REQUIRE(one_after_another > 24.99 && one_after_another < 25.1);
            }));
}

TEST_F(DriverTest, launches_of_one_executable_are_ordered_but_not_those_of_two) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUgraph g = new_graph();
              kernel_node(g, f, 10 * ms, {}, 36);
              const CUgraphExec x = instantiate(g), y = instantiate(g);
              CUstream s = stream(), t = stream();
              const auto together = [&](CUgraphExec in_s, CUgraphExec in_t) {
                CUevent start = event(), end = event(), other = event();
                const StreamBlocker blocker;
                blocker.close_both(s, t);
                OK(CU(cuEventRecord)(start, s));
                OK(CU(cuGraphLaunch)(in_s, s));
                OK(CU(cuGraphLaunch)(in_t, t));
                OK(CU(cuEventRecord)(other, t));
                OK(CU(cuStreamWaitEvent)(s, other, 0));
                OK(CU(cuEventRecord)(end, s));
                blocker.open();
                OK(CU(cuEventSynchronize)(end));
                float took = 0;
                OK(CU(cuEventElapsedTime)(&took, start, end));
                return took;
              };
              const float ordered = together(x, x), beside = together(x, y);
              REQUIRE(ordered > 19.9);
              REQUIRE(beside < 15);
            }));
}

TEST_F(DriverTest, every_kind_of_node_does_its_work_in_order) {
  EXPECT_EQ(0, run([] {
              begin();
              CUgraph g = new_graph();
              uint32_t* host = pinned();
              CUdeviceptr device = 0;
              OK(CU(cuMemAlloc_v2)(&device, 4096));
              CUgraphNode set, down, write, call, inner;
              const CUDA_MEMSET_NODE_PARAMS fill = {device, 0, 0xabcd1234, 4, 1024, 1};
              OK(CU(cuGraphAddMemsetNode)(&set, g, nullptr, 0, &fill, nullptr));
              CUDA_MEMCPY3D copy = {};
              copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = device;
              copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = host;
              copy.WidthInBytes = 64, copy.Height = copy.Depth = 1;
              OK(CU(cuGraphAddMemcpyNode)(&down, g, &set, 1, &copy, nullptr));
              CUstreamBatchMemOpParams op = {};
              op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
              op.writeValue.address = reinterpret_cast<CUdeviceptr>(host + 1);
              op.writeValue.value = 77;
              const CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {nullptr, 1, &op, 0};
              OK(CU(cuGraphAddBatchMemOpNode)(&write, g, &down, 1, &batch));
              const CUDA_HOST_NODE_PARAMS increment = {[](void* p) { ++static_cast<uint32_t*>(p)[1]; }, host};
              OK(CU(cuGraphAddHostNode)(&call, g, &write, 1, &increment));
              CUgraph child = new_graph();
              const CUDA_HOST_NODE_PARAMS twice = {[](void* p) { static_cast<uint32_t*>(p)[1] *= 2; }, host};
              CUgraphNode in_child;
              OK(CU(cuGraphAddHostNode)(&in_child, child, nullptr, 0, &twice));
              OK(CU(cuGraphAddChildGraphNode)(&inner, g, &call, 1, child));
              OK(CU(cuGraphDestroy)(child));  // The node has its own copy.
              CUgraphNode rest;
              OK(CU(cuGraphAddEmptyNode)(&rest, g, &inner, 1));
              const CUgraphExec x = instantiate(g);
              OK(CU(cuGraphDestroy)(g));
              for (int i = 0; i < 3; ++i) {
                host[0] = host[1] = 0;
                OK(CU(cuGraphLaunch)(x, nullptr));
                OK(CU(cuCtxSynchronize)());
                REQUIRE(host[0] == 0xabcd1234 && host[1] == 156);
              }
              REQUIRE(CU(cuGraphExecDestroy)(x) == CUDA_SUCCESS);
              REQUIRE(CU(cuGraphLaunch)(x, nullptr) == CUDA_ERROR_INVALID_VALUE);
            }));
}

TEST_F(DriverTest, event_nodes_order_a_graph_with_other_streams) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = stream(), t = stream();
              CUevent before = event(), within = event(), end = event();
              CUgraph g = new_graph();
              CUgraphNode wait, note;
              OK(CU(cuGraphAddEventWaitNode)(&wait, g, nullptr, 0, before));
              const CUgraphNode work = kernel_node(g, f, 5 * ms, {wait});
              OK(CU(cuGraphAddEventRecordNode)(&note, g, &work, 1, within));
              const CUgraphExec x = instantiate(g);
              CUevent start = event();
              const StreamBlocker blocker;
              blocker.close(s);
              OK(CU(cuEventRecord)(start, s));
              OK(launch(f, s, 10 * ms));
              OK(CU(cuEventRecord)(before, s));
              OK(CU(cuGraphLaunch)(x, t));
              OK(CU(cuStreamWaitEvent)(s, within, 0));
              OK(CU(cuEventRecord)(end, s));
              blocker.open();
              OK(CU(cuEventSynchronize)(end));
              float took = 0;
              OK(CU(cuEventElapsedTime)(&took, start, end));
              REQUIRE(took > 14.99 && took < 15.2);
              OK(CU(cuEventElapsedTime)(&took, start, within));
              REQUIRE(took > 14.99 && took < 15.2);
            }));
}

TEST_F(DriverTest, a_graph_of_two_devices_keeps_its_order) {
  EXPECT_EQ(0, run([] {
              CUcontext second = begin(1), first = begin(0);
              const CUfunction f = spin();
              OK(CU(cuCtxSetCurrent)(second));
              const CUfunction f2 = spin();
              OK(CU(cuCtxSetCurrent)(first));
              CUgraph g = new_graph();
              const CUgraphNode a = kernel_node(g, f, 3 * ms, {});
              const CUgraphNode b = kernel_node(g, f2, 3 * ms, {a}, 108, second);
              kernel_node(g, f, 3 * ms, {b});
              const float took = ms_of_launch(g);
              REQUIRE(took > 8.9);  // Gates between devices add the delay of the service thread.
            }));
}

TEST_F(DriverTest, conditional_bodies_run_according_to_the_default_value) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              const struct {
                CUgraphConditionalNodeType type;
                unsigned size, start, flags;
                float expected;  // Body i takes 2 * (i + 1) ms.
              } cases[] = {{CU_GRAPH_COND_TYPE_IF, 1, 0, 1, 0},     {CU_GRAPH_COND_TYPE_IF, 1, 1, 1, 2},
                           {CU_GRAPH_COND_TYPE_IF, 2, 0, 1, 4},     {CU_GRAPH_COND_TYPE_IF, 1, 1, 0, 0},
                           {CU_GRAPH_COND_TYPE_SWITCH, 3, 2, 1, 6}, {CU_GRAPH_COND_TYPE_SWITCH, 3, 3, 1, 0},
                           {CU_GRAPH_COND_TYPE_WHILE, 1, 0, 1, 0},  {CU_GRAPH_COND_TYPE_WHILE, 1, 1, 1, 2}};
              for (const auto& c : cases) {
                CUgraph g = new_graph();
                CUgraphNodeParams p = {};
                p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
                OK(CU(cuGraphConditionalHandleCreate)(&p.conditional.handle, g, nullptr, c.start, c.flags));
                p.conditional.type = c.type;
                p.conditional.size = c.size;
                CUgraphNode node;
                OK(CU(cuGraphAddNode)(&node, g, nullptr, 0, &p));
                for (unsigned i = 0; i < c.size; ++i)
                  kernel_node(p.conditional.phGraph_out[i], f, 2 * (i + 1) * ms, {});
                const float took = ms_of_launch(g);
                REQUIRE(took > c.expected - 0.01 && took < c.expected + 0.2);
                REQUIRE(CU(cuGraphDestroy)(p.conditional.phGraph_out[0]) == CUDA_ERROR_INVALID_VALUE);
                OK(CU(cuGraphDestroy)(g));
              }
              CUgraph g = new_graph();
              CUgraphConditionalHandle unused;
              OK(CU(cuGraphConditionalHandleCreate)(&unused, g, nullptr, 1, 1));
              CUDA_GRAPH_INSTANTIATE_PARAMS p = {};
              CUgraphExec x;
              REQUIRE(CU(cuGraphInstantiateWithParams)(&x, g, &p) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(p.result_out == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
            }));
}

TEST_F(DriverTest, the_structure_of_a_graph_can_be_queried_cloned_and_changed) {
  EXPECT_EQ(0, run([] {
              begin();
              CUgraph g = new_graph();
              CUgraphNode n[4];
              for (auto& node : n) OK(CU(cuGraphAddEmptyNode)(&node, g, nullptr, 0));
              const CUgraphNode from[] = {n[0], n[0], n[1]}, to[] = {n[1], n[2], n[3]};
              OK(CU(cuGraphAddDependencies)(g, from, to, 3));
              REQUIRE(CU(cuGraphAddDependencies)(g, from, to, 1) == CUDA_ERROR_INVALID_VALUE);
              size_t count = 0;
              OK(CU(cuGraphGetNodes)(g, nullptr, &count));
              REQUIRE(count == 4);
              OK(CU(cuGraphGetEdges)(g, nullptr, nullptr, &count));
              REQUIRE(count == 3);
              CUgraphNode few[8];
              count = 8;
              OK(CU(cuGraphGetRootNodes)(g, few, &count));
              REQUIRE(count == 1 && few[0] == n[0] && few[1] == nullptr);
              count = 8;
              OK(CU(cuGraphNodeGetDependentNodes)(n[0], few, &count));
              REQUIRE(count == 2 && few[0] == n[1] && few[1] == n[2]);
              CUgraph clone;
              CUgraphNode twin;
              OK(CU(cuGraphClone)(&clone, g));
              OK(CU(cuGraphNodeFindInClone)(&twin, n[3], clone));
              REQUIRE(twin != n[3]);
              OK(CU(cuGraphDestroyNode)(n[1]));
              OK(CU(cuGraphGetEdges)(g, nullptr, nullptr, &count));
              REQUIRE(count == 1);
              OK(CU(cuGraphGetEdges)(clone, nullptr, nullptr, &count));
              REQUIRE(count == 3);
              CUgraphNodeType type;
              REQUIRE(CU(cuGraphNodeGetType)(n[1], &type) == CUDA_ERROR_INVALID_VALUE);
              // Edges with data need the newer query.
              CUgraphEdgeData data = {};
              data.type = 1;
              OK(CU(cuGraphAddDependencies_v2)(g, &n[2], &n[3], &data, 1));
              count = 1;
              REQUIRE(CU(cuGraphNodeGetDependencies)(n[3], few, &count) == CUDA_ERROR_LOSSY_QUERY);
              CUgraphEdgeData seen[1];
              OK(CU(cuGraphNodeGetDependencies_v2)(n[3], few, seen, &count));
              REQUIRE(count == 1 && seen[0].type == 1);
              // A cycle is detected at instantiation at the latest.
              OK(CU(cuGraphAddDependencies)(g, &n[3], &n[0], 1));
              OK(CU(cuGraphAddDependencies)(g, &n[0], &n[3], 1));
              CUgraphExec x;
              CUDA_GRAPH_INSTANTIATE_PARAMS p = {};
              REQUIRE(CU(cuGraphInstantiateWithParams)(&x, g, &p) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(p.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
              REQUIRE(CU(cuGraphInstantiateWithFlags)(&x, clone, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) ==
                      CUDA_ERROR_NOT_SUPPORTED);
              OK(CU(cuGraphDebugDotPrint)(clone, "/dev/null", 0));
              OK(CU(cuGraphDestroy)(g));
              REQUIRE(CU(cuGraphDestroy)(g) == CUDA_ERROR_INVALID_VALUE);
            }));
}

TEST_F(DriverTest, an_executable_accepts_new_parameters_but_not_another_topology) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUgraph g = new_graph();
              const CUgraphNode a = kernel_node(g, f, 2 * ms, {});
              const CUgraphNode b = kernel_node(g, f, 2 * ms, {a});
              const CUgraphExec x = instantiate(g);
              const auto took = [&](float wanted) {
                const float t = ms_of_launch(x);
                REQUIRE(t > wanted - 0.01 && t < wanted + 0.2);
              };
              took(4);
              uint64_t ns = 6 * ms;
              uint32_t other = 0;
              void* parameters[] = {&ns, &other};
              CUDA_KERNEL_NODE_PARAMS p = {};
              OK(CU(cuGraphKernelNodeGetParams_v2)(b, &p));
              REQUIRE(*static_cast<uint64_t*>(p.kernelParams[0]) == 2 * ms);
              p.kernelParams = parameters;
              OK(CU(cuGraphExecKernelNodeSetParams_v2)(x, b, &p));
              took(8);
              OK(CU(cuGraphNodeSetEnabled)(x, a, 0));
              unsigned enabled = 1;
              OK(CU(cuGraphNodeGetEnabled)(x, a, &enabled));
              REQUIRE(enabled == 0);
              took(6);
              OK(CU(cuGraphNodeSetEnabled)(x, a, 1));
              OK(CU(cuGraphKernelNodeSetParams_v2)(a, &p));
              took(8);  // The graph changed, but not the executable.
              CUgraphExecUpdateResultInfo info;
              OK(CU(cuGraphExecUpdate_v2)(x, g, &info));
              took(8);  // 6 ms for a, plus the time that the graph has for b.
              CUgraph wider = new_graph();
              kernel_node(wider, f, 2 * ms, {});
              kernel_node(wider, f, 2 * ms, {});
              REQUIRE(CU(cuGraphExecUpdate_v2)(x, wider, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
              REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
              CUgraph other_kind = new_graph();
              CUgraphNode e;
              OK(CU(cuGraphAddEmptyNode)(&e, other_kind, nullptr, 0));
              kernel_node(other_kind, f, 2 * ms, {e});
              REQUIRE(CU(cuGraphExecUpdate_v2)(x, other_kind, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
              REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == e);
              took(8);
            }));
}

TEST_F(DriverTest, user_objects_are_kept_as_long_as_a_launch_needs_them) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              static std::atomic<int> destroyed{0};
              CUuserObject object;
              OK(CU(cuUserObjectCreate)(
                  &object, nullptr, [](void*) { ++destroyed; }, 1, 1));
              CUgraph g = new_graph();
              kernel_node(g, f, 1 * ms, {});
              OK(CU(cuGraphRetainUserObject)(g, object, 1, 1));
              const CUgraphExec x = instantiate(g);
              OK(CU(cuGraphDestroy)(g));
              REQUIRE(destroyed == 0);
              const StreamBlocker blocker;
              blocker.close(nullptr);
              OK(CU(cuGraphLaunch)(x, nullptr));
              OK(CU(cuGraphExecDestroy)(x));
              usleep(30'000);
              REQUIRE(destroyed == 0);
              blocker.open();
              OK(CU(cuCtxSynchronize)());
              for (int i = 0; i < 1000 && destroyed == 0; ++i)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              REQUIRE(destroyed == 1);
              REQUIRE(CU(cuUserObjectRelease)(object, 1) == CUDA_ERROR_INVALID_VALUE);
            }));
}

TEST_F(DriverTest, a_graph_longer_than_a_channel_and_wider_than_all_lanes_completes) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUgraph g = new_graph();
              std::vector<CUgraphNode> level;
              for (int l = 0; l < 100; ++l) {
                std::vector<CUgraphNode> next;
                for (unsigned i = 0; i < 30; ++i)
                  next.push_back(kernel_node(
                      g, f, 1000, level.empty() ? level : std::vector{level[i], level[(i + 7) % 30]}));
                level = next;
              }
              const CUgraphExec x = instantiate(g);
              for (int i = 0; i < 3; ++i) OK(CU(cuGraphLaunch)(x, nullptr));
              OK(CU(cuCtxSynchronize)());
            }));
}

}  // namespace
}  // namespace carve::sim
