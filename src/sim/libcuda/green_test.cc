// Green contexts through the real library: how a part of the multiprocessors affects a kernel's time, and
// which objects still belong to the primary context. The device has 72 multiprocessors.
#include "sim/libcuda/graph_fixture.h"

namespace carve::sim {
namespace {

CUdevResource all_of_it(CUdevice device = 0) {
  CUdevResource r = {};
  OK(CU(cuDeviceGetDevResource)(device, &r, CU_DEV_RESOURCE_TYPE_SM));
  return r;
}
CUgreenCtx green_of(CUdevResource r) {
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx g = nullptr;
  OK(CU(cuDevResourceGenerateDesc)(&desc, &r, 1));
  OK(CU(cuGreenCtxCreate)(&g, desc, 0, 1));
  return g;
}
std::vector<CUdevResource> split(unsigned least, unsigned wanted, CUdevResource* rest = nullptr) {
  std::vector<CUdevResource> parts(wanted);
  const CUdevResource all = all_of_it();
  OK(CU(cuDevSmResourceSplitByCount)(parts.data(), &wanted, &all, rest, 0, least));
  parts.resize(wanted);
  return parts;
}
CUstream green_stream(CUgreenCtx g) {
  CUstream s = nullptr;
  OK(CU(cuGreenCtxStreamCreate)(&s, g, CU_STREAM_NON_BLOCKING, 0));
  return s;
}
// Makes the primary context current, as programs with green contexts do.
void begin_primary() {
  CUcontext primary = nullptr;
  OK(CU(cuInit)(0));
  OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(CU(cuCtxSetCurrent)(primary));
}

// Returns the model time from the release of both streams to the end of each stream's work.
template <class A, class B>
float ms_of(CUstream s, A in_s, CUstream t, B in_t) {
  CUevent start = event(), other = event(), end = event();
  const StreamBlocker blocker;
  blocker.close_both(s, t);
  OK(CU(cuEventRecord)(start, s));
  in_s();
  in_t();
  OK(CU(cuEventRecord)(other, t));
  OK(CU(cuStreamWaitEvent)(s, other, 0));
  OK(CU(cuEventRecord)(end, s));
  blocker.open();
  OK(CU(cuEventSynchronize)(end));
  float ms_taken = 0;
  OK(CU(cuEventElapsedTime)(&ms_taken, start, end));
  return ms_taken;
}
#define REQUIRE_MS(value, wanted)                                                 \
  do {                                                                            \
    const float is = (value);                                                     \
    if (is < (wanted)-0.05 || is > (wanted) + 0.3) printf("%f ms\n", double{is}); \
    REQUIRE(is > (wanted)-0.05 && is < (wanted) + 0.3);                           \
  } while (false)

TEST_F(DriverTest, a_green_context_uses_only_its_multiprocessors_and_parts_run_in_parallel) {
  EXPECT_EQ(0, run([] {
              begin_primary();
              const CUfunction f = spin();
              const auto parts = split(36, 2);
              const CUgreenCtx a = green_of(parts[0]), b = green_of(parts[1]);
              CUstream in_a = green_stream(a), also_in_a = green_stream(a), in_b = green_stream(b),
                       outside = stream();
              const auto work = [&](CUstream s) { return [=] { OK(launch(f, s, 10 * ms)); }; };
              const auto nothing = [] {};
              REQUIRE_MS(ms_of(outside, work(outside), in_a, nothing), 10);
              REQUIRE_MS(ms_of(in_a, work(in_a), in_b, nothing), 20);
              REQUIRE_MS(ms_of(in_a, work(in_a), in_b, work(in_b)), 20);
              REQUIRE_MS(ms_of(in_a, work(in_a), also_in_a, work(also_in_a)), 40);
              const auto quarter = [&](CUstream s) { return [=] { OK(launch(f, s, 10 * ms, 108)); }; };
              REQUIRE_MS(ms_of(in_a, quarter(in_a), also_in_a, quarter(also_in_a)), 10);
              // A graph's branches also stay within the part.
              CUgraph g = new_graph();
              kernel_node(g, f, 5 * ms, {});
              kernel_node(g, f, 5 * ms, {});
              const CUgraphExec x = instantiate(g);
              REQUIRE_MS(ms_of(
                             in_a, [&] { OK(CU(cuGraphLaunch)(x, in_a)); }, in_b, nothing),
                         20);
              uint64_t ns = 1000;
              uint32_t other = 0;
              void* parameters[] = {&ns, &other};
              REQUIRE(CU(cuLaunchCooperativeKernel)(f, 432, 1, 1, 256, 1, 1, 0, in_a, parameters) ==
                      CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
              OK(CU(cuLaunchCooperativeKernel)(f, 216, 1, 1, 256, 1, 1, 0, in_a, parameters));
              OK(CU(cuCtxSynchronize)());
            }));
}

TEST_F(DriverTest, a_green_context_is_the_primary_context_except_for_its_streams) {
  EXPECT_EQ(0, run([] {
              OK(CU(cuInit)(0));
              const CUgreenCtx a = green_of(split(16, 1)[0]);
              unsigned flags = 0;
              int active = 0;
              OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
              REQUIRE(active == 1);
              CUcontext face = nullptr, now = nullptr;
              OK(CU(cuCtxFromGreenCtx)(&face, a));
              OK(CU(cuCtxSetCurrent)(face));
              OK(CU(cuCtxGetCurrent)(&now));
              REQUIRE(now == face);
              const CUfunction f = spin();
              CUdeviceptr p = 0;
              OK(CU(cuMemAlloc_v2)(&p, 4096));
              CUstream made = stream();
              CUgreenCtx of = nullptr;
              for (CUstream s : {made, CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
                OK(CU(cuStreamGetGreenCtx)(s, &of));
                REQUIRE(of == a);
              }
              const CUstream none = green_stream(a);
              REQUIRE_MS(ms_of(
                             nullptr, [&] { OK(launch(f, nullptr, 2 * ms)); }, none, [] {}),
                         9);
              REQUIRE_MS(ms_of(
                             made, [&] { OK(launch(f, made, 2 * ms)); }, none, [] {}),
                         9);
              CUdevResource r = {};
              OK(CU(cuCtxGetDevResource)(face, &r, CU_DEV_RESOURCE_TYPE_SM));
              REQUIRE(r.sm.smCount == 16);
              // Memory that it allocated outlives it, in the primary context.
              CUcontext primary = nullptr;
              OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
              REQUIRE(primary != face);
              OK(CU(cuCtxSetCurrent)(primary));
              OK(CU(cuStreamGetGreenCtx)(nullptr, &of));
              REQUIRE(of == nullptr);
              OK(CU(cuGreenCtxDestroy)(a));
              REQUIRE(CU(cuGreenCtxDestroy)(a) == CUDA_ERROR_INVALID_CONTEXT);
              REQUIRE(CU(cuCtxSetCurrent)(face) == CUDA_ERROR_INVALID_CONTEXT);
              OK(CU(cuMemsetD8_v2)(p, 1, 4096));
              OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
              OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
              REQUIRE(active == 0);
            }));
}

TEST_F(DriverTest, multiprocessors_are_split_as_the_architecture_allows) {
  EXPECT_EQ(
      0, run([] {
        begin_primary();
        CUdevResource all = all_of_it(), rest = {};
        REQUIRE(all.sm.smCount == 72);
        unsigned groups = 0;
        OK(CU(cuDevSmResourceSplitByCount)(nullptr, &groups, &all, nullptr, 0, 15));
        REQUIRE(groups == 4);  // Groups of 16.
        const auto parts = split(15, 3, &rest);
        REQUIRE(parts.size() == 3 && parts[2].sm.smCount == 16 && rest.sm.smCount == 24);
        OK(CU(cuDevSmResourceSplitByCount)(nullptr, &groups, &all, nullptr, 0, 1));
        REQUIRE(groups == 18);  // Groups of 4, the minimum.
        OK(CU(cuDevSmResourceSplitByCount)(nullptr, &groups, &all, nullptr, 1, 1));
        REQUIRE(groups == 36);
        REQUIRE(CU(cuDevSmResourceSplitByCount)(nullptr, &groups, &all, nullptr, 0, 73) ==
                CUDA_ERROR_INVALID_VALUE);
        CUdevResource wrong = all;
        wrong.type = CU_DEV_RESOURCE_TYPE_INVALID;
        CUdevResourceDesc desc = nullptr;
        REQUIRE(CU(cuDevResourceGenerateDesc)(&desc, &wrong, 1) == CUDA_ERROR_INVALID_RESOURCE_TYPE);
        CUdevResource two[] = {all, all_of_it(1)};
        REQUIRE(CU(cuDevResourceGenerateDesc)(&desc, two, 2) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
        OK(CU(cuDevResourceGenerateDesc)(&desc, &all, 1));
        CUgreenCtx g = nullptr;
        REQUIRE(CU(cuGreenCtxCreate)(&g, desc, 0, 0) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(CU(cuGreenCtxCreate)(&g, desc, 1, 1) == CUDA_ERROR_INVALID_VALUE);
        CUstream s = nullptr;
        g = green_of(all);
        REQUIRE(CU(cuGreenCtxStreamCreate)(&s, g, 0, 0) == CUDA_ERROR_INVALID_VALUE);
      }));
}

TEST_F(DriverTest, events_of_contexts_cover_all_their_streams) {
  EXPECT_EQ(0, run([] {
              begin_primary();
              CUcontext primary = nullptr;
              OK(CU(cuCtxGetCurrent)(&primary));
              const auto parts = split(36, 2);
              const CUgreenCtx a = green_of(parts[0]), b = green_of(parts[1]);
              CUstream in_a = green_stream(a), also_in_a = green_stream(a), in_b = green_stream(b),
                       outside = stream();
              CUevent of_a = event(), of_b = event(), of_all = event();
              const StreamBlocker blocker;
              blocker.close(also_in_a);
              OK(CU(cuGreenCtxRecordEvent)(a, of_a));
              OK(CU(cuGreenCtxRecordEvent)(b, of_b));
              OK(CU(cuCtxRecordEvent)(primary, of_all));
              OK(CU(cuEventSynchronize)(of_b));
              REQUIRE(CU(cuEventQuery)(of_a) == CUDA_ERROR_NOT_READY);
              REQUIRE(CU(cuEventQuery)(of_all) == CUDA_ERROR_NOT_READY);
              OK(CU(cuGreenCtxWaitEvent)(b, of_a));
              REQUIRE(CU(cuStreamQuery)(in_b) == CUDA_ERROR_NOT_READY);
              OK(CU(cuStreamSynchronize)(in_a));
              OK(CU(cuStreamSynchronize)(outside));
              OK(CU(cuCtxWaitEvent)(primary, of_a));
              REQUIRE(CU(cuStreamQuery)(outside) == CUDA_ERROR_NOT_READY);
              blocker.open();
              OK(CU(cuCtxSynchronize)());
              OK(CU(cuEventQuery)(of_all));
            }));
}

}  // namespace
}  // namespace carve::sim
