// Events that processes share, through the real library.
#include "sim/libcuda/stream_fixture.h"

namespace carve::sim {
namespace {

constexpr unsigned shared_event_flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

struct Offer {
  CUipcMemHandle memory;
  CUipcEventHandle event;
};

TEST_F(DriverTest, a_stream_waits_for_another_processs_recording_and_sees_its_bytes) {
  const Pipe offers;
  const Signal recorded, waits, answered;
  const pid_t writer = start([&] {
    begin();
    const CUfunction f = spin();
    CUdeviceptr p = 0;
    CUevent e = nullptr;
    Offer offer = {};
    OK(CU(cuMemAlloc_v2)(&p, MiB));
    OK(CU(cuMemsetD8_v2)(p, 1, MiB));
    OK(CU(cuIpcGetMemHandle)(&offer.memory, p));
    OK(CU(cuEventCreate)(&e, shared_event_flags));
    OK(CU(cuIpcGetEventHandle)(&offer.event, e));
    offers.put(offer);
    answered.take();
    const StreamBlocker blocker;
    blocker.close(nullptr);
    OK(launch(f, nullptr, 60 * ms));
    OK(CU(cuMemsetD8Async)(p, 2, MiB, nullptr));
    OK(CU(cuEventRecord)(e, nullptr));
    recorded.give();
    waits.take();
    blocker.open();
    answered.take();
    OK(CU(cuEventSynchronize)(e));  // The reader's recording.
    unsigned char got = 0;
    OK(CU(cuMemcpyDtoH_v2)(&got, p, 1));
    REQUIRE(got == 3);
  });
  EXPECT_EQ(0, run([&] {
              begin();
              const CUfunction f = spin();
              const auto offer = offers.take<Offer>();
              CUdeviceptr p = 0;
              CUevent e = nullptr;
              CUstream s = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuIpcOpenMemHandle_v2)(&p, offer.memory, 1));
              OK(CU(cuIpcOpenEventHandle)(&e, offer.event));
              OK(CU(cuEventQuery)(e));  // No recording exists.
              answered.give();
              recorded.take();
              REQUIRE(CU(cuEventQuery)(e) == CUDA_ERROR_NOT_READY);
              OK(CU(cuStreamWaitEvent)(s, e, 0));
              waits.give();
              unsigned char got = 0;
              OK(CU(cuMemcpyDtoHAsync_v2)(&got, p + MiB - 1, 1, s));
              OK(CU(cuStreamSynchronize)(s));
              REQUIRE(got == 2);
              OK(CU(cuEventQuery)(e));
              OK(launch(f, s, 20 * ms));
              OK(CU(cuMemsetD8Async)(p, 3, MiB, s));
              OK(CU(cuEventRecord)(e, s));
              answered.give();
              OK(CU(cuStreamSynchronize)(s));
              OK(CU(cuEventDestroy_v2)(e));
            }));
  EXPECT_EQ(0, finish(writer));
}

TEST_F(DriverTest, no_process_waits_for_a_recording_of_a_dead_process) {
  const Pipe offers;
  const pid_t writer = start([&] {
    begin();
    CUevent e = nullptr;
    CUipcEventHandle h;
    OK(CU(cuEventCreate)(&e, shared_event_flags));
    OK(launch(spin(), nullptr, 3'600'000 * ms));
    OK(CU(cuEventRecord)(e, nullptr));
    OK(CU(cuIpcGetEventHandle)(&h, e));
    offers.put(h);
    pause();
  });
  EXPECT_EQ(0, run([&] {
              begin();
              CUevent e = nullptr, late = nullptr;
              const auto h = offers.take<CUipcEventHandle>();
              OK(CU(cuIpcOpenEventHandle)(&e, h));
              REQUIRE(CU(cuEventQuery)(e) == CUDA_ERROR_NOT_READY);
              OK(CU(cuStreamWaitEvent)(nullptr, e, 0));
              kill(writer, SIGKILL);
              OK(CU(cuStreamSynchronize)(nullptr));
              OK(CU(cuEventSynchronize)(e));
              OK(CU(cuEventDestroy_v2)(e));
              REQUIRE(CU(cuIpcOpenEventHandle)(&late, h) == CUDA_ERROR_MAP_FAILED);
            }));
  EXPECT_EQ(128 + SIGKILL, finish(writer));
}

TEST_F(DriverTest, a_shared_event_has_no_time_and_also_works_in_its_own_process) {
  EXPECT_EQ(0, run([] {
              begin();
              CUevent e = nullptr, plain = nullptr;
              CUipcEventHandle h;
              REQUIRE(CU(cuEventCreate)(&e, CU_EVENT_INTERPROCESS) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuEventCreate)(&e, shared_event_flags));
              OK(CU(cuEventCreate)(&plain, 0));
              REQUIRE(CU(cuIpcGetEventHandle)(&h, plain) == CUDA_ERROR_INVALID_VALUE);
              const StreamBlocker blocker;
              blocker.close(nullptr);
              OK(launch(spin(), nullptr, 20 * ms));
              OK(CU(cuEventRecord)(e, nullptr));
              REQUIRE(CU(cuEventQuery)(e) == CUDA_ERROR_NOT_READY);
              blocker.open();
              OK(CU(cuEventSynchronize)(e));
              OK(CU(cuEventQuery)(e));
              h = {};
              REQUIRE(CU(cuIpcOpenEventHandle)(&plain, h) == CUDA_ERROR_INVALID_VALUE);
            }));
}

}  // namespace
}  // namespace carve::sim
