// The implicit waits between streams (CUDA programming guide, "Default Stream"; CUDA driver API, "Stream
// synchronization behavior"). The legacy stream and blocking streams wait for each other; a thread's own
// default stream is a blocking stream. No other stream waits.
#include "sim/libcuda/graph_fixture.h"

namespace carve::sim {
namespace {

enum class Which { legacy, named_legacy, own, own_twin, blocking, other_blocking, non_blocking };
constexpr const char* kind_names[] = {"legacy",   "named_legacy",   "own",         "own_twin",
                                      "blocking", "other_blocking", "non_blocking"};

struct Streams {
  CUstream blocking = stream(0), other_blocking = stream(0), non_blocking = stream();
  CUstream of(Which w) const {
    switch (w) {
      case Which::named_legacy: return CU_STREAM_LEGACY;
      case Which::own: return CU_STREAM_PER_THREAD;
      case Which::blocking: return blocking;
      case Which::other_blocking: return other_blocking;
      case Which::non_blocking: return non_blocking;
      default: return nullptr;
    }
  }
};

constexpr bool legacy(Which w) { return w == Which::legacy || w == Which::named_legacy; }
constexpr bool same(Which a, Which b) {
  const auto own = [](Which w) { return w == Which::own || w == Which::own_twin; };
  return a == b || (legacy(a) && legacy(b)) || (own(a) && own(b));
}
constexpr bool waits(Which a, Which b) {
  return same(a, b) || (legacy(a) && b != Which::non_blocking) || (legacy(b) && a != Which::non_blocking);
}

// One item of each kind of work, followed by a recording.
struct Work {
  CUfunction f = spin();
  uint32_t* host = pinned();
  CUdeviceptr device = 0;
  Work() { OK(CU(cuMemAlloc_v2)(&device, 4096)); }

  void give(Which w, CUstream s, unsigned kind, CUevent e) const {
    const bool twin = w == Which::own_twin;
    uint64_t ns = 1000;
    uint32_t other = 0;
    void* parameters[] = {&ns, &other};
    switch (kind) {
      case 0:
        OK((twin ? CU(cuLaunchKernel_ptsz) : CU(cuLaunchKernel))(f, 1, 1, 1, 32, 1, 1, 0, s, parameters,
                                                                 nullptr));
        break;
      case 1: OK((twin ? CU(cuMemsetD32Async_ptsz) : CU(cuMemsetD32Async))(device, 1, 64, s)); break;
      case 2:
        OK((twin ? CU(cuMemcpyHtoDAsync_v2_ptsz) : CU(cuMemcpyHtoDAsync_v2))(device, host, 64, s));
        break;
      case 3:
        OK((twin ? CU(cuMemcpyDtoHAsync_v2_ptsz) : CU(cuMemcpyDtoHAsync_v2))(host, device, 64, s));
        break;
      default: break;  // Only the event is recorded.
    }
    OK((twin ? CU(cuEventRecord_ptsz) : CU(cuEventRecord))(e, s));
  }
};

TEST_F(DriverTest, streams_wait_for_each_other_according_to_their_kind_for_every_kind_of_work) {
  EXPECT_EQ(0, run([] {
              begin();
              const Streams streams;
              const Work work;
              for (int a = 0; a < 7; ++a)
                for (int b = 0; b < 7; ++b)
                  for (unsigned kind = 0; kind < 5; ++kind) {
                    const auto first = static_cast<Which>(a), second = static_cast<Which>(b);
                    CUevent done = event();
                    const StreamBlocker blocker;
                    if (first == Which::own_twin)
                      blocker.close(CU_STREAM_PER_THREAD);
                    else
                      blocker.close(streams.of(first));
                    work.give(second, streams.of(second), kind, done);
                    // Work that follows the blocker cannot be done; independent work completes.
                    const CUresult now =
                        waits(first, second) ? CU(cuEventQuery)(done) : CU(cuEventSynchronize)(done);
                    const CUresult wanted = waits(first, second) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
                    if (now != wanted)
                      std::fprintf(stderr, "%s, %s, %u\n", kind_names[a], kind_names[b], kind);
                    REQUIRE(now == wanted);
                    blocker.open();
                    OK(CU(cuCtxSynchronize)());
                    OK(CU(cuEventDestroy_v2)(done));
                  }
            }));
}

TEST_F(DriverTest, each_thread_has_its_own_default_stream) {
  EXPECT_EQ(0, run([] {
              CUcontext context = begin();
              const Work work;
              const StreamBlocker blocker;
              blocker.close(CU_STREAM_PER_THREAD);
              unsigned long long mine = 0, theirs = 0;
              OK(CU(cuStreamGetId)(CU_STREAM_PER_THREAD, &mine));
              std::thread([&] {
                OK(CU(cuCtxSetCurrent)(context));
                OK(CU(cuStreamGetId_ptsz)(nullptr, &theirs));
                CUevent done = event();
                work.give(Which::own_twin, nullptr, 0, done);
                OK(CU(cuStreamSynchronize_ptsz)(nullptr));
                OK(CU(cuEventQuery)(done));
                uint32_t word = 7;
                OK(CU(cuMemcpyHtoD_v2_ptds)(work.device, &word, 4));
                word = 0;
                OK(CU(cuMemcpyDtoH_v2_ptds)(&word, work.device, 4));
                REQUIRE(word == 7);
              }).join();
              REQUIRE(mine != theirs);
              REQUIRE(CU(cuStreamQuery)(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY);
              blocker.open();
              OK(CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
            }));
}

}  // namespace
}  // namespace carve::sim
