// Stream capture through the real library: the resulting graphs, and every error that the documentation of
// stream capture describes.
#include "sim/libcuda/graph_fixture.h"

namespace carve::sim {
namespace {

CUgraph end_capture(CUstream s) {
  CUgraph g = nullptr;
  OK(CU(cuStreamEndCapture)(s, &g));
  REQUIRE(g != nullptr);
  return g;
}
void begin_capture(CUstream s, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  OK(CU(cuStreamBeginCapture_v2)(s, mode));
}
CUstreamCaptureStatus status_of(CUstream s) {
  CUstreamCaptureStatus status;
  OK(CU(cuStreamIsCapturing)(s, &status));
  return status;
}
size_t nodes_of(CUgraph g) {
  size_t n = 0;
  OK(CU(cuGraphGetNodes)(g, nullptr, &n));
  return n;
}

TEST_F(DriverTest, captured_work_runs_only_when_the_graph_is_launched) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = stream();
              uint32_t* host = pinned();
              CUdeviceptr device = 0;
              OK(CU(cuMemAlloc_v2)(&device, 4096));
              begin_capture(s);
              REQUIRE(status_of(s) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
              OK(CU(cuMemsetD32Async)(device, 41, 16, s));
              OK(launch(f, s, 5 * ms));
              OK(CU(cuMemcpyDtoHAsync_v2)(host, device, 64, s));
              OK(CU(cuLaunchHostFunc)(
                  s, [](void* p) { ++static_cast<uint32_t*>(p)[0]; }, host));
              OK(CU(cuStreamWriteValue32)(s, reinterpret_cast<CUdeviceptr>(host + 1), 9, 0));
              const CUgraph g = end_capture(s);
              REQUIRE(status_of(s) == CU_STREAM_CAPTURE_STATUS_NONE);
              OK(CU(cuStreamSynchronize)(s));
              REQUIRE(host[0] == 0 && nodes_of(g) == 5);
              const float took = ms_of_launch(g);
              REQUIRE(took >= 5);
              REQUIRE(host[0] == 42 && host[1] == 9);
            }));
}

TEST_F(DriverTest, streams_join_a_capture_through_events_and_run_in_parallel) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = stream(), t = stream();
              CUevent fork = event(), join = event();
              begin_capture(s);
              OK(launch(f, s, 5 * ms, 108));
              OK(CU(cuEventRecord)(fork, s));
              OK(CU(cuStreamWaitEvent)(t, fork, 0));
              REQUIRE(status_of(t) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
              OK(launch(f, s, 5 * ms, 108));
              OK(launch(f, t, 5 * ms, 108));
              OK(CU(cuEventRecord)(join, t));
              OK(CU(cuStreamWaitEvent)(s, join, 0));
              OK(launch(f, s, 5 * ms, 108));
              const CUgraph g = end_capture(s);
              REQUIRE(nodes_of(g) == 4);
              const float took = ms_of_launch(g);
              REQUIRE(took > 14.99 && took < 15.1);
              REQUIRE(CU(cuEventQuery)(fork) == CUDA_ERROR_CAPTURED_EVENT);
              OK(CU(cuEventRecord)(fork, s));  // Recorded again, it is an ordinary event.
              OK(CU(cuEventSynchronize)(fork));
            }));
}

TEST_F(DriverTest, unjoined_unmatched_and_missing_captures_are_errors) {
  EXPECT_EQ(
      0, run([] {
        begin();
        const CUfunction f = spin();
        CUstream s = stream(), t = stream(), u = stream();
        CUevent fork = event();
        CUgraph g = nullptr;
        REQUIRE(CU(cuStreamEndCapture)(s, &g) == CUDA_ERROR_ILLEGAL_STATE);
        begin_capture(s);
        REQUIRE(CU(cuStreamBeginCapture_v2)(s, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_ILLEGAL_STATE);
        OK(CU(cuEventRecord)(fork, s));
        OK(CU(cuStreamWaitEvent)(t, fork, 0));
        OK(launch(f, t, ms));
        REQUIRE(CU(cuStreamEndCapture)(s, &g) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        REQUIRE(g == nullptr && status_of(t) == CU_STREAM_CAPTURE_STATUS_NONE);
        begin_capture(s);
        OK(CU(cuEventRecord)(fork, s));
        OK(CU(cuStreamWaitEvent)(t, fork, 0));
        REQUIRE(CU(cuStreamEndCapture)(t, &g) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        REQUIRE(status_of(s) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        REQUIRE(launch(f, s, ms) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        REQUIRE(CU(cuStreamEndCapture)(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        begin_capture(s);
        begin_capture(u);
        OK(CU(cuEventRecord)(fork, s));
        REQUIRE(CU(cuStreamWaitEvent)(u, fork, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
        REQUIRE(CU(cuStreamEndCapture)(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        REQUIRE(CU(cuStreamEndCapture)(u, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CUevent outside = event();
        OK(CU(cuEventRecord)(outside, t));
        begin_capture(s);
        REQUIRE(CU(cuStreamWaitEvent)(s, outside, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        REQUIRE(CU(cuStreamEndCapture)(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        REQUIRE(CU(cuStreamBeginCapture_v2)(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
                CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      }));
}

TEST_F(DriverTest, calls_that_wait_or_allocate_invalidate_a_capture_depending_on_its_mode) {
  EXPECT_EQ(0, run([] {
              begin();
              CUcontext c = nullptr;
              OK(CU(cuCtxGetCurrent)(&c));
              CUstream s = stream();
              CUgraph g = nullptr;
              CUdeviceptr p = 0;
              const auto spoilt = [&](CUresult result) {
                REQUIRE(result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
                REQUIRE(CU(cuStreamEndCapture)(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              };
              begin_capture(s);
              spoilt(CU(cuStreamSynchronize)(s));
              begin_capture(s);
              spoilt(CU(cuStreamQuery)(s));
              begin_capture(s);
              spoilt(CU(cuCtxSynchronize)());
              begin_capture(s);
              spoilt(CU(cuMemAlloc_v2)(&p, 4096));
              begin_capture(s);
              spoilt(CU(cuStreamAddCallback)(
                  s, [](CUstream, CUresult, void*) {}, nullptr, 0));
              begin_capture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
              spoilt(CU(cuMemAlloc_v2)(&p, 4096));
              begin_capture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
              OK(CU(cuMemAlloc_v2)(&p, 4096));
              end_capture(s);
              begin_capture(s);
              CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
              OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
              REQUIRE(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
              OK(CU(cuMemAlloc_v2)(&p, 4096));
              OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
              end_capture(s);
              // A global capture rejects such calls of other threads, a thread-local capture does not.
              const auto elsewhere = [&](auto call) {
                CUresult result = CUDA_SUCCESS;
                std::thread([&] {
                  OK(CU(cuCtxSetCurrent)(c));
                  result = call();
                }).join();
                return result;
              };
              begin_capture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
              REQUIRE(elsewhere([&] { return CU(cuMemAlloc_v2)(&p, 4096); }) == CUDA_SUCCESS);
              REQUIRE(elsewhere([&] { return CU(cuStreamEndCapture)(s, &g); }) ==
                      CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
              end_capture(s);
              begin_capture(s);
              spoilt(elsewhere([&] { return CU(cuMemAlloc_v2)(&p, 4096); }));
            }));
}

TEST_F(DriverTest, the_legacy_stream_cannot_be_used_while_a_blocking_stream_captures) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = stream(CU_STREAM_DEFAULT), t = stream();
              CUgraph g = nullptr;
              CUstreamCaptureStatus status;
              begin_capture(s);
              REQUIRE(CU(cuStreamIsCapturing)(nullptr, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
              REQUIRE(status_of(s) == CU_STREAM_CAPTURE_STATUS_ACTIVE);  // Still valid after the query.
              REQUIRE(launch(f, nullptr, ms) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
              REQUIRE(CU(cuStreamEndCapture)(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              begin_capture(t);
              OK(launch(f, nullptr, ms));  // A non-blocking stream is not affected.
              OK(launch(f, t, ms));
              end_capture(t);
              OK(CU(cuStreamBeginCapture_v2)(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
              OK(launch(f, CU_STREAM_PER_THREAD, ms));
              OK(CU(cuStreamEndCapture_ptsz)(nullptr, &g));
              REQUIRE(nodes_of(g) == 1);
            }));
}

TEST_F(DriverTest, a_capture_returns_its_graph_and_accepts_new_dependencies) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = stream();
              CUgraph g = new_graph(), seen = nullptr, ended = nullptr;
              const CUgraphNode first = kernel_node(g, f, ms, {});
              OK(CU(cuStreamBeginCaptureToGraph)(s, g, &first, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
              CUstreamCaptureStatus status;
              cuuint64_t id = 0;
              const CUgraphNode* nodes = nullptr;
              size_t n = 0;
              OK(CU(cuStreamGetCaptureInfo_v2)(s, &status, &id, &seen, &nodes, &n));
              REQUIRE(id != 0 && seen == g && n == 1 && nodes[0] == first);
              CUgraphNode own = kernel_node(g, f, ms, {});
              OK(CU(cuStreamUpdateCaptureDependencies)(s, &own, 1, 0));
              const CUgraphEdgeData* data = nullptr;
              OK(CU(cuStreamGetCaptureInfo_v3)(s, &status, nullptr, nullptr, &nodes, &data, &n));
              REQUIRE(n == 2 && data[1].type == 0);
              OK(CU(cuStreamUpdateCaptureDependencies)(s, &own, 1, 1));
              OK(launch(f, s, ms));
              OK(CU(cuStreamEndCapture)(s, &ended));
              REQUIRE(ended == g);
              OK(CU(cuGraphNodeGetDependentNodes)(first, nullptr, &n));
              REQUIRE(n == 0);
              OK(CU(cuGraphNodeGetDependentNodes)(own, nullptr, &n));
              REQUIRE(n == 1);
            }));
}

TEST_F(DriverTest, external_events_and_graphs_launched_in_a_capture_become_nodes) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = stream();
              CUevent e = event();
              CUgraph g = new_graph();
              kernel_node(g, f, 3 * ms, {});
              const CUgraphExec x = instantiate(g);
              REQUIRE(CU(cuEventRecordWithFlags)(e, s, CU_EVENT_RECORD_EXTERNAL) == CUDA_ERROR_INVALID_VALUE);
              begin_capture(s);
              OK(CU(cuGraphLaunch)(x, s));
              OK(CU(cuEventRecordWithFlags)(e, s, CU_EVENT_RECORD_EXTERNAL));
              OK(CU(cuStreamWaitEvent)(s, e, CU_EVENT_WAIT_EXTERNAL));
              const CUgraph captured = end_capture(s);
              CUgraphNode nodes[3];
              size_t n = 3;
              OK(CU(cuGraphGetNodes)(captured, nodes, &n));
              CUgraphNodeType types[3];
              for (int i = 0; i < 3; ++i) OK(CU(cuGraphNodeGetType)(nodes[i], &types[i]));
              REQUIRE(types[0] == CU_GRAPH_NODE_TYPE_GRAPH && types[1] == CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
                      types[2] == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
              const float took = ms_of_launch(captured);
              REQUIRE(took > 2.99 && took < 3.2);
              OK(CU(cuEventQuery)(e));
            }));
}

}  // namespace
}  // namespace carve::sim
