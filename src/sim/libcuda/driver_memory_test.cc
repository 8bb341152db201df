// Memory through the real library: contents, blocks, and processes that start and end.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "abi/nvml.h"
#include "sim/libcuda/test_child.h"
#include "sim/set/set.h"

namespace carve::sim {
namespace {

constexpr size_t usable_bytes = 22731 * MiB, context_size = 256 * MiB;

std::vector<unsigned char> noise(size_t n, unsigned seed) {
  std::mt19937 r(seed);
  std::vector<unsigned char> v(n);
  for (auto& b : v) b = static_cast<unsigned char>(r());
  return v;
}

// Reads memory that another thread is writing, as a program does when it polls for the end of a copy.
__attribute__((no_sanitize_thread)) unsigned char glance(const void* p) {
  return *static_cast<const volatile unsigned char*>(p);
}

TEST_F(DriverTest, copies_of_every_form_transfer_the_bytes) {
  EXPECT_EQ(0, run([] {
              begin();
              CUdeviceptr a = 0, b = 0;
              const size_t n = 3 * MiB + 17;
              OK(CU(cuMemAlloc_v2)(&a, n));
              OK(CU(cuMemAlloc_v2)(&b, n));
              const auto source = noise(n, 1);
              std::vector<unsigned char> back(n);
              OK(CU(cuMemcpyHtoD_v2)(a, source.data(), n));
              OK(CU(cuMemcpyDtoD_v2)(b, a, n));
              OK(CU(cuMemcpyDtoH_v2)(back.data(), b, n));
              REQUIRE(back == source);

              // Copies a part into the middle; the rest is unchanged.
              OK(CU(cuMemcpyHtoD_v2)(b + 1000, source.data(), 500));
              OK(CU(cuMemcpy)(reinterpret_cast<CUdeviceptr>(back.data()), b, n));
              REQUIRE(std::memcmp(back.data() + 1000, source.data(), 500) == 0);
              REQUIRE(std::memcmp(back.data() + 1500, source.data() + 1500, n - 1500) == 0);

              // Rows of an image in a pitched allocation.
              CUdeviceptr p = 0;
              size_t pitch = 0;
              OK(CU(cuMemAllocPitch_v2)(&p, &pitch, 700, 30, 4));
              REQUIRE(pitch >= 700 && pitch % 512 == 0);
              CUDA_MEMCPY2D m = {};
              m.srcMemoryType = CU_MEMORYTYPE_HOST;
              m.srcHost = source.data();
              m.srcPitch = 700;
              m.dstMemoryType = CU_MEMORYTYPE_DEVICE;
              m.dstDevice = p;
              m.dstPitch = pitch;
              m.WidthInBytes = 700;
              m.Height = 30;
              OK(CU(cuMemcpy2D_v2)(&m));
              std::vector<unsigned char> rows(700 * 30);
              CUDA_MEMCPY2D r = {};
              r.srcMemoryType = CU_MEMORYTYPE_DEVICE;
              r.srcDevice = p;
              r.srcPitch = pitch;
              r.dstMemoryType = CU_MEMORYTYPE_HOST;
              r.dstHost = rows.data();
              r.dstPitch = 700;
              r.WidthInBytes = 700;
              r.Height = 30;
              OK(CU(cuMemcpy2DAsync_v2)(&r, nullptr));
              OK(CU(cuStreamSynchronize)(nullptr));
              REQUIRE(std::memcmp(rows.data(), source.data(), rows.size()) == 0);

              // Sets.
              OK(CU(cuMemsetD8_v2)(a, 0x5a, n));
              OK(CU(cuMemsetD16_v2)(a + 10, 0x1234, 5));
              OK(CU(cuMemsetD32_v2)(a + 32, 0xdeadbeef, 4));
              OK(CU(cuMemcpyDtoH_v2)(back.data(), a, n));
              for (size_t i = 0; i < n; ++i) {
                unsigned want = 0x5a;
                if (i >= 10 && i < 20) want = i % 2 ? 0x12 : 0x34;
                if (i >= 32 && i < 48) want = 0xdeadbeef >> i % 4 * 8 & 0xff;
                REQUIRE(back[i] == want);
              }
              // The bytes past the end of an allocation belong to no allocation.
              REQUIRE(CU(cuMemcpyHtoD_v2)(a + n - 4, source.data(), 5) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuMemsetD8_v2)(a, 0, n + 1) == CUDA_ERROR_INVALID_VALUE);
            }));
}

TEST_F(DriverTest, asynchronous_copies_complete_in_stream_order) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              CUdeviceptr d = 0;
              void* pinned = nullptr;
              OK(CU(cuMemAlloc_v2)(&d, 4 * MiB));
              OK(CU(cuMemHostAlloc)(&pinned, 4 * MiB, 0));
              const auto* words = static_cast<const unsigned char*>(pinned);
              for (int turn = 0; turn < 20; ++turn) {
                // Pageable bytes may change as soon as the call has returned.
                std::vector<unsigned char> pageable(60'000, static_cast<unsigned char>(turn + 1));
                OK(CU(cuMemcpyHtoDAsync_v2)(d, pageable.data(), pageable.size(), s));
                pageable.assign(pageable.size(), 0xee);
                OK(CU(cuMemcpyDtoHAsync_v2)(pinned, d, 60'000, s));
                OK(CU(cuStreamSynchronize)(s));
                REQUIRE(words[0] == turn + 1 && words[59'999] == turn + 1);
              }
              // Copies to pageable memory are complete when the call has returned.
              std::vector<unsigned char> plain(4 * MiB);
              OK(CU(cuMemsetD8Async)(d, 0x55, 4 * MiB, s));
              OK(CU(cuMemcpyDtoHAsync_v2)(plain.data(), d, 4 * MiB, s));
              REQUIRE(plain.front() == 0x55 && plain.back() == 0x55);
              // The bytes arrive without any further call.
              OK(CU(cuMemsetD8Async)(d, 0x77, 4 * MiB, s));
              OK(CU(cuMemcpyDtoHAsync_v2)(pinned, d, 4 * MiB, s));
              for (int i = 0; i < 2000 && glance(words + 4 * MiB - 1) != 0x77; ++i) usleep(1000);
              REQUIRE(glance(words + 4 * MiB - 1) == 0x77);
            }));
}

TEST_F(DriverTest, memory_is_counted_in_blocks_of_two_mib_which_small_allocations_share) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              REQUIRE(before == usable_bytes - context_size);
              CUdeviceptr p[600], q = 0, r = 0;
              OK(CU(cuMemAlloc_v2)(&p[0], 1));
              REQUIRE(before - free_now() == 2 * MiB);
              for (int i = 1; i < 600; ++i) {
                OK(CU(cuMemAlloc_v2)(&p[i], 512 + i));
                REQUIRE(p[i] % 512 == 0);
              }
              REQUIRE(before - free_now() == 2 * MiB);
              OK(CU(cuMemAlloc_v2)(&q, MiB + 1));
              REQUIRE(before - free_now() == 4 * MiB);
              OK(CU(cuMemAlloc_v2)(&r, 4 * MiB + 1));
              REQUIRE(before - free_now() == 10 * MiB);
              for (CUdeviceptr x : p) OK(CU(cuMemFree_v2)(x));
              REQUIRE(before - free_now() == 8 * MiB);
              OK(CU(cuMemFree_v2)(q));
              OK(CU(cuMemFree_v2)(r));
              REQUIRE(free_now() == before);
              REQUIRE(CU(cuMemFree_v2)(r) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuMemAlloc_v2)(&r, before + 1) == CUDA_ERROR_OUT_OF_MEMORY);
              OK(CU(cuMemAlloc_v2)(&r, before / (2 * MiB) * (2 * MiB)));
              REQUIRE(free_now() == before % (2 * MiB));
            }));
}

TEST_F(DriverTest, ten_thousand_live_allocations_can_be_freed_in_any_order) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              std::vector<CUdeviceptr> live(10'000);
              std::mt19937 r(3);
              for (auto& p : live) OK(CU(cuMemAlloc_v2)(&p, 1 + r() % (2 * MiB)));
              std::shuffle(live.begin(), live.end(), r);
              for (auto p : live) OK(CU(cuMemFree_v2)(p));
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, a_device_pointer_faults_when_the_host_dereferences_it) {
  EXPECT_EQ(128 + SIGSEGV, run([] {
              begin();
              CUdeviceptr p = 0;
              OK(CU(cuMemAlloc_v2)(&p, 4 * MiB));
              signal(SIGSEGV, SIG_DFL);  // A sanitizer would end the process in another way.
              *reinterpret_cast<volatile char*>(p) = 1;
            }));
}

TEST_F(DriverTest, managed_memory_is_the_same_for_host_and_device) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              CUdeviceptr p = 0;
              OK(CU(cuMemAllocManaged)(&p, 3 * MiB, CU_MEM_ATTACH_GLOBAL));
              OK(CU(cuMemsetD8_v2)(p, 9, 3 * MiB));
              REQUIRE(before - free_now() == 4 * MiB);
              auto* bytes = reinterpret_cast<unsigned char*>(p);
              REQUIRE(bytes[0] == 9 && bytes[3 * MiB - 1] == 9);
              unsigned managed = 0;
              OK(CU(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p + 5));
              REQUIRE(managed == 1);
              OK(CU(cuMemFree_v2)(p));
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, the_sixty_fifth_context_is_refused_and_takes_no_memory) {
  EXPECT_EQ(0, run([] {
              begin();
              CUcontext c[63], more = nullptr;
              for (CUcontext& x : c) OK(CU(cuCtxCreate_v2)(&x, 0, 0));
              const size_t full = free_now();
              REQUIRE(full == usable_bytes - 64 * context_size);
              REQUIRE(CU(cuCtxCreate_v2)(&more, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
              REQUIRE(free_now() == full);
              OK(CU(cuCtxDestroy_v2)(c[10]));
              OK(CU(cuCtxCreate_v2)(&more, 0, 0));
            }));
}

TEST_F(DriverTest, processes_see_each_others_memory_usage_and_a_killed_one_releases_its_memory) {
  const Signal held, killed;
  const pid_t holder = start([&] {
    begin();
    CUdeviceptr p = 0;
    OK(CU(cuMemAlloc_v2)(&p, 20'000 * MiB));
    held.give();
    pause();
  });
  const pid_t watcher = start([&] {
    held.take();
    begin();
    REQUIRE(free_now() == usable_bytes - 2 * context_size - 20'000 * MiB);
    CUdeviceptr p = 0;
    REQUIRE(CU(cuMemAlloc_v2)(&p, 4'000 * MiB) == CUDA_ERROR_OUT_OF_MEMORY);
    killed.take();
    // The next request gets the memory without waiting for a sweep.
    OK(CU(cuMemAlloc_v2)(&p, 21'000 * MiB));
  });
  usleep(300'000);
  kill(holder, SIGKILL);
  finish(holder);
  killed.give();
  EXPECT_EQ(0, finish(watcher));
}

// Kills at random instructions of every operation that changes the shared state, 150 times.
TEST_F(DriverTest, the_device_keeps_working_after_a_process_is_killed_at_any_instruction) {
  std::mt19937 r(11);
  for (int round = 0; round < 150; ++round) {
    const pid_t victim = start([] {
      begin();
      const CUfunction f = spin();
      CUstream s = nullptr;
      OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
      for (;;) {
        CUdeviceptr p = 0;
        CUcontext c = nullptr;
        CU(cuMemAlloc_v2)(&p, 10 * MiB);
        launch(f, s, 3'000);
        CU(cuMemsetD8Async)(p, 1, 4096, s);
        CU(cuMemFree_v2)(p);
        if (CU(cuCtxCreate_v2)(&c, 0, 0) == CUDA_SUCCESS) CU(cuCtxDestroy_v2)(c);
      }
    });
    usleep(static_cast<useconds_t>(2'000 + r() % 8'000));
    kill(victim, SIGKILL);
    ASSERT_EQ(128 + SIGKILL, finish(victim));
  }
  EXPECT_EQ(0, run([] {
              begin();
              REQUIRE(free_now() == usable_bytes - context_size);
              OK(launch(spin(), nullptr, 1'000'000));
              OK(CU(cuCtxSynchronize)());
            }));
}

TEST_F(DriverTest, a_forked_child_has_no_driver_and_affects_nothing_of_its_parent) {
  EXPECT_EQ(0, run([] {
              begin();
              CUdeviceptr p = 0;
              OK(CU(cuMemAlloc_v2)(&p, 100 * MiB));
              const size_t before = free_now();
              const int status = run([] {
                size_t free = 0, total = 0;
                REQUIRE(CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED);
                REQUIRE(CU(cuMemGetInfo_v2)(&free, &total) == CUDA_ERROR_NOT_INITIALIZED);
              });
              REQUIRE(status == 0);
              REQUIRE(free_now() == before);
              OK(CU(cuMemsetD8_v2)(p, 1, 100));
              OK(CU(cuMemFree_v2)(p));
            }));
}

TEST_F(DriverTest, a_child_forked_before_cuInit_has_its_own_driver) {
  EXPECT_EQ(0, run([] {
              library();
              REQUIRE(run([] { begin(); }) == 0);
              begin();
            }));
}

TEST_F(DriverTest, exec_releases_the_memory_while_the_process_keeps_running) {
  const Signal ready;
  const pid_t changer = start([&] {
    begin();
    CUdeviceptr p = 0;
    OK(CU(cuMemAlloc_v2)(&p, 1000 * MiB));
    ready.give();
    execl("/bin/sleep", "sleep", "5", nullptr);
  });
  ready.take();
  usleep(100'000);
  EXPECT_EQ(0, run([] {
              begin();
              REQUIRE(free_now() == usable_bytes - context_size);
            }));
  EXPECT_EQ(0, kill(changer, SIGKILL));
  EXPECT_EQ(128 + SIGKILL, finish(changer));
}

#define NVML(name) (reinterpret_cast<decltype(&::name)>(dlsym(nvml, #name)))

TEST_F(DriverTest, a_client_stopped_in_the_middle_of_a_change_does_not_block_nvml) {
  const Signal holds;
  const pid_t stopped = start([&] {
    static Set set;
    REQUIRE(open_set(directory_.c_str(), &set) == Opened::yes);
    const Locked lock(*set.devices[0]);
    holds.give();
    raise(SIGSTOP);
    _exit(0);
  });
  holds.take();
  EXPECT_EQ(0, run([] {
              void* nvml = dlopen((build_directory() / "lib/carve/sim/libnvidia-ml.so.1").c_str(), RTLD_NOW);
              REQUIRE(nvml);
              nvmlDevice_t device = nullptr;
              nvmlMemory_t memory = {};
              nvmlUtilization_t utilisation = {};
              unsigned processes = 0;
              REQUIRE(NVML(nvmlInit_v2)() == NVML_SUCCESS);
              REQUIRE(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device) == 0);
              REQUIRE(NVML(nvmlDeviceGetMemoryInfo)(device, &memory) == 0);
              REQUIRE(memory.free == usable_bytes);
              REQUIRE(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &processes, nullptr) == 0);
              REQUIRE(NVML(nvmlDeviceGetUtilizationRates)(device, &utilisation) == NVML_ERROR_TIMEOUT);
            }));
  kill(stopped, SIGKILL);
  EXPECT_EQ(128 + SIGKILL, finish(stopped));
  EXPECT_EQ(0, run([] { begin(); }));
}

TEST_F(DriverTest, the_primary_context_is_shared_within_the_process) {
  EXPECT_EQ(0, run([] {
              OK(CU(cuInit)(0));
              CUcontext a = nullptr, b = nullptr;
              unsigned flags = 0;
              int active = 1;
              OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
              REQUIRE(!active);
              OK(CU(cuDevicePrimaryCtxRetain)(&a, 0));
              OK(CU(cuDevicePrimaryCtxRetain)(&b, 0));
              REQUIRE(a == b);
              OK(CU(cuCtxSetCurrent)(a));
              REQUIRE(free_now() == usable_bytes - context_size);
              OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
              REQUIRE(free_now() == usable_bytes - context_size);
              OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
              size_t x = 0, y = 0;
              REQUIRE(CU(cuMemGetInfo_v2)(&x, &y) != CUDA_SUCCESS);
              REQUIRE(CU(cuDevicePrimaryCtxRelease_v2)(0) == CUDA_ERROR_INVALID_CONTEXT);
            }));
}

TEST_F(DriverTest, injected_allocation_failures_reach_the_program) {
  fault("out-of-memory --count 1 --device 0");
  EXPECT_EQ(0, run([] {
              begin();
              CUdeviceptr p = 0;
              REQUIRE(CU(cuMemAlloc_v2)(&p, MiB) == CUDA_ERROR_OUT_OF_MEMORY);
              OK(CU(cuMemAlloc_v2)(&p, MiB));
            }));
}

}  // namespace
}  // namespace carve::sim
