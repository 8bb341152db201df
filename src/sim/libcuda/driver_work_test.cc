// Work through the real library: streams, events, host functions, and kernels with durations.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sim/libcuda/stream_fixture.h"

namespace carve::sim {
namespace {

TEST_F(DriverTest, events_measure_model_time_exactly) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = nullptr;
              CUevent a = nullptr, b = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuEventCreate)(&a, 0));
              OK(CU(cuEventCreate)(&b, 0));
              const StreamBlocker blocker;
              blocker.close(s);
              OK(CU(cuEventRecord)(a, s));
              for (int i = 0; i < 10; ++i) OK(launch(f, s, 2 * ms));
              OK(CU(cuEventRecord)(b, s));
              REQUIRE(CU(cuEventQuery)(b) == CUDA_ERROR_NOT_READY);
              blocker.open();
              OK(CU(cuEventSynchronize)(b));
              float elapsed = 0;
              OK(CU(cuEventElapsedTime)(&elapsed, a, b));
              REQUIRE(elapsed > 19.999f && elapsed < 20.001f);
            }));
}

TEST_F(DriverTest, a_synchronisation_waits_as_long_as_the_kernel_takes) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              const StreamBlocker blocker;
              blocker.close(nullptr);
              OK(launch(f, nullptr, 500 * ms));
              REQUIRE(CU(cuStreamQuery)(nullptr) == CUDA_ERROR_NOT_READY);
              const auto from = std::chrono::steady_clock::now();
              blocker.open();
              OK(CU(cuCtxSynchronize)());
              REQUIRE(ms_since(from) >= 500 && ms_since(from) < 5000);
            }));
}

TEST_F(DriverTest, the_launch_queue_accepts_1024_launches_and_then_blocks) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUcontext context = nullptr;
              OK(CU(cuCtxGetCurrent)(&context));
              CUstream s = stream();
              const StreamBlocker blocker;
              blocker.close(s);
              for (int i = 1; i < 1024; ++i) OK(launch(f, s, 1 * us));
              std::atomic<bool> taken = false;
              std::thread one_more([&] {
                OK(CU(cuCtxSetCurrent)(context));
                OK(launch(f, s, 1 * us));  // Waits until the blocker ends.
                taken = true;
              });
              usleep(100'000);
              REQUIRE(!taken);
              blocker.open();
              one_more.join();
              OK(CU(cuStreamSynchronize)(s));
            }));
}

TEST_F(DriverTest, streams_wait_for_events_of_other_streams_and_devices) {
  EXPECT_EQ(0, run([] {
              const CUcontext first = begin(0);
              const CUfunction f = spin();
              CUstream s = nullptr, t = nullptr;
              CUevent done = nullptr, start = nullptr, end = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamCreate)(&t, CU_STREAM_NON_BLOCKING));
              for (CUevent* e : {&done, &start, &end}) OK(CU(cuEventCreate)(e, 0));
              OK(CU(cuEventRecord)(start, t));
              OK(launch(f, s, 20 * ms, 6));
              OK(CU(cuEventRecord)(done, s));
              OK(CU(cuStreamWaitEvent)(t, done, 0));
              OK(launch(f, t, 5 * ms, 6));
              OK(CU(cuEventRecord)(end, t));
              OK(CU(cuEventSynchronize)(end));
              float elapsed = 0;
              OK(CU(cuEventElapsedTime)(&elapsed, start, end));
              REQUIRE(elapsed >= 25.0f);

              const auto from = std::chrono::steady_clock::now();
              OK(launch(f, s, 30 * ms, 6));
              OK(CU(cuEventRecord)(done, s));
              CUcontext second = nullptr;
              OK(CU(cuCtxCreate_v2)(&second, 0, 1));
              CUstream u = nullptr;
              OK(CU(cuStreamCreate)(&u, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamWaitEvent)(u, done, 0));
              OK(CU(cuStreamSynchronize)(u));
              REQUIRE(ms_since(from) >= 30);
              OK(CU(cuCtxSetCurrent)(first));
            }));
}

std::atomic<int> calls;
const unsigned char* seen_at;
void count_call(void* expected) {
  if (seen_at[100] == static_cast<unsigned char>(reinterpret_cast<uintptr_t>(expected))) ++calls;
}

TEST_F(DriverTest, host_functions_run_in_order_and_see_the_results_of_earlier_copies) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = nullptr;
              OK(CU(cuStreamCreate)(&s, 0));
              CUdeviceptr d = 0;
              void* pinned = nullptr;
              OK(CU(cuMemAlloc_v2)(&d, 4096));
              OK(CU(cuMemAllocHost_v2)(&pinned, 4096));
              seen_at = static_cast<const unsigned char*>(pinned);
              for (uintptr_t i = 1; i <= 50; ++i) {
                OK(CU(cuMemsetD8Async)(d, static_cast<unsigned char>(i), 4096, s));
                OK(CU(cuMemcpyDtoHAsync_v2)(pinned, d, 4096, s));
                OK(CU(cuLaunchHostFunc)(s, count_call, reinterpret_cast<void*>(i)));
              }
              OK(CU(cuStreamSynchronize)(s));
              REQUIRE(calls == 50);
            }));
}

TEST_F(DriverTest, each_thread_has_its_own_per_thread_default_stream) {
  EXPECT_EQ(0, run([] {
              const CUcontext c = begin();
              const CUfunction f = spin();
              uint64_t ns = 1 * ms;
              uint32_t other = 0;
              const StreamBlocker blocker;
              blocker.close(CU_STREAM_PER_THREAD);
              void* parameters[] = {&ns, &other};
              OK(CU(cuLaunchKernel_ptsz)(f, 6, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
              std::thread([&] {
                OK(CU(cuCtxSetCurrent)(c));
                REQUIRE(CU(cuStreamQuery_ptsz)(nullptr) == CUDA_SUCCESS);
                REQUIRE(CU(cuStreamQuery)(nullptr) == CUDA_SUCCESS);
                OK(CU(cuLaunchKernel_ptsz)(f, 6, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
                OK(CU(cuStreamSynchronize_ptsz)(nullptr));
              }).join();
              REQUIRE(CU(cuStreamQuery_ptsz)(nullptr) == CUDA_ERROR_NOT_READY);
              blocker.open();
              OK(CU(cuCtxSynchronize)());
            }));
}

TEST_F(DriverTest, two_processes_share_the_device_in_time_slices) {
  const Signal ready, go[2];
  std::vector<pid_t> children;
  for (const Signal& mine : go)
    children.push_back(start([&] {
      begin();
      const CUfunction f = spin();
      const CUevent a = event(), b = event();
      const StreamBlocker blocker;
      blocker.close(nullptr);
      OK(CU(cuEventRecord)(a, nullptr));
      for (int i = 0; i < 900; ++i) OK(launch(f, nullptr, 1 * ms));
      OK(CU(cuEventRecord)(b, nullptr));
      ready.give();
      mine.take();
      blocker.open();
      OK(CU(cuEventSynchronize)(b));
      float elapsed = 0;
      OK(CU(cuEventElapsedTime)(&elapsed, a, b));
      // 900 ms of work at 2.0/4.2 of the device, minus the work done before the other process started.
      REQUIRE(elapsed > 1200 && elapsed < 1900);
    }));
  for (size_t i = 0; i < children.size(); ++i) ready.take();
  for (const Signal& s : go) s.give();
  for (const pid_t pid : children) EXPECT_EQ(0, finish(pid));
}

TEST_F(DriverTest, an_urgent_stream_overtakes_a_batch_stream) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream batch = nullptr, urgent = nullptr;
              CUevent batch_end = nullptr, urgent_end = nullptr;
              OK(CU(cuStreamCreate)(&batch, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamCreateWithPriority)(&urgent, CU_STREAM_NON_BLOCKING, -99));
              int priority = 0;
              OK(CU(cuStreamGetPriority)(urgent, &priority));
              REQUIRE(priority == -5);
              OK(CU(cuEventCreate)(&batch_end, 0));
              OK(CU(cuEventCreate)(&urgent_end, 0));
              const StreamBlocker blocker;
              blocker.close_both(batch, urgent);
              OK(launch(f, batch, 300 * ms));
              OK(CU(cuEventRecord)(batch_end, batch));
              OK(launch(f, urgent, 1 * ms));
              OK(CU(cuEventRecord)(urgent_end, urgent));
              blocker.open();
              OK(CU(cuCtxSynchronize)());
              float later = 0;
              OK(CU(cuEventElapsedTime)(&later, urgent_end, batch_end));
              REQUIRE(later > 0);
            }));
}

TEST_F(DriverTest, copies_between_two_devices_transfer_the_bytes) {
  EXPECT_EQ(0, run([] {
              const CUcontext a = begin(0), b = begin(1);
              CUdeviceptr here = 0, there = 0;
              OK(CU(cuCtxSetCurrent)(a));
              OK(CU(cuMemAlloc_v2)(&here, 4096));
              OK(CU(cuCtxSetCurrent)(b));
              OK(CU(cuMemAlloc_v2)(&there, 4096));
              REQUIRE(here != there);
              OK(CU(cuMemsetD8_v2)(here, 0x42, 4096));
              OK(CU(cuMemcpyPeer)(there, b, here, a, 4096));
              unsigned char back[4096] = {};
              OK(CU(cuMemcpyDtoH_v2)(back, there, 4096));
              REQUIRE(back[0] == 0x42 && back[4095] == 0x42);
              int ordinal = -1;
              OK(CU(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
              REQUIRE(ordinal == 1);
            }));
}

TEST_F(DriverTest, threads_of_one_process_can_use_one_context_simultaneously) {
  EXPECT_EQ(0, run([] {
              const CUcontext c = begin();
              const CUfunction f = spin();
              const size_t before = free_now();
              std::vector<std::thread> threads;
              for (int t = 0; t < 8; ++t)
                threads.emplace_back([=] {
                  OK(CU(cuCtxSetCurrent)(c));
                  CUstream s = nullptr;
                  CUevent e = nullptr;
                  OK(CU(cuStreamCreate)(&s, t % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
                  OK(CU(cuEventCreate)(&e, 0));
                  std::vector<unsigned char> out(5000), in(5000, static_cast<unsigned char>(t + 1));
                  for (int i = 0; i < 30; ++i) {
                    CUdeviceptr p = 0;
                    OK(CU(cuMemAlloc_v2)(&p, 5000));
                    OK(CU(cuMemcpyHtoDAsync_v2)(p, in.data(), in.size(), s));
                    OK(launch(f, s, 20 * us, 6));
                    OK(CU(cuEventRecord)(e, s));
                    OK(CU(cuStreamWaitEvent)(nullptr, e, 0));
                    OK(CU(cuMemcpyDtoHAsync_v2)(out.data(), p, out.size(), s));
                    OK(CU(cuStreamSynchronize)(s));
                    REQUIRE(out == in);
                    OK(CU(cuMemFree_v2)(p));
                  }
                  OK(CU(cuEventDestroy_v2)(e));
                  OK(CU(cuStreamDestroy_v2)(s));
                });
              for (auto& t : threads) t.join();
              OK(CU(cuCtxSynchronize)());
              REQUIRE(free_now() == before);
            }));
}

}  // namespace
}  // namespace carve::sim
