// Managed memory through the real library: how much device memory it takes and when, and which allocations
// evict it.
#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

constexpr size_t usable_bytes = 22731 * MiB, context_size = 256 * MiB;
constexpr CUmemLocation host_location = {CU_MEM_LOCATION_TYPE_HOST, 0};

CUmemLocation device(int device) { return {CU_MEM_LOCATION_TYPE_DEVICE, device}; }
CUdeviceptr managed(size_t bytes) {
  CUdeviceptr p = 0;
  OK(CU(cuMemAllocManaged)(&p, bytes, CU_MEM_ATTACH_GLOBAL));
  return p;
}
int told(CUmem_range_attribute which, CUdeviceptr p, size_t n) {
  int answer = -99;
  OK(CU(cuMemRangeGetAttribute)(&answer, sizeof answer, which, p, n));
  return answer;
}
size_t free_on(int device) {
  CUcontext c = nullptr;
  OK(CU(cuDevicePrimaryCtxRetain)(&c, device));
  OK(CU(cuCtxPushCurrent_v2)(c));
  const size_t free = free_now();
  OK(CU(cuCtxPopCurrent_v2)(&c));
  return free;
}

TEST_F(DriverTest, a_kernel_moves_as_much_managed_memory_to_the_device_as_fits) {
  EXPECT_EQ(0, run([] {
              begin();
              int can = 0;
              OK(CU(cuDeviceGetAttribute)(&can, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
              REQUIRE(can == 1);
              const CUfunction f = spin();
              const size_t before = free_now();
              const CUdeviceptr p = managed(40 * GiB);
              REQUIRE(free_now() == before);
              OK(launch(f, nullptr, 1000));
              REQUIRE(free_now() < 2 * MiB);
              // Another allocation evicts it from the device, and it then stays on the host.
              CUdeviceptr d = 0, more = 0;
              OK(CU(cuMemAlloc_v2)(&d, 20 * GiB));
              REQUIRE(CU(cuMemAlloc_v2)(&more, 3 * GiB) == CUDA_ERROR_OUT_OF_MEMORY);
              auto* bytes = reinterpret_cast<unsigned char*>(p);
              OK(CU(cuMemsetD8_v2)(p + 39 * GiB, 7, MiB));
              REQUIRE(bytes[39 * GiB] == 7 && bytes[39 * GiB + MiB - 1] == 7);
              OK(CU(cuMemFree_v2)(d));
              OK(CU(cuMemFree_v2)(p));
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, an_allocation_of_another_process_evicts_managed_memory) {
  const Signal full, asked;
  const pid_t first = start([&] {
    begin();
    const CUdeviceptr p = managed(30 * GiB);
    OK(launch(spin(), nullptr, 1000));
    full.give();
    asked.take();
    OK(CU(cuMemPrefetchAsync)(p, 30 * GiB, 0, nullptr));
    REQUIRE(free_now() < 2 * MiB);  // On the device again, because there is room.
  });
  full.take();
  EXPECT_EQ(0, run([] {
              begin();
              CUdeviceptr p = 0;
              OK(CU(cuMemAlloc_v2)(&p, 15 * GiB));
              REQUIRE(free_now() < 2 * MiB);
              OK(CU(cuMemFree_v2)(p));
              REQUIRE(free_now() >= 15 * GiB);
            }));
  asked.give();
  EXPECT_EQ(0, finish(first));
}

TEST_F(DriverTest, advice_sets_the_location_of_managed_memory_and_can_be_read) {
  EXPECT_EQ(
      0, run([] {
        begin();
        const size_t before = free_now();
        const CUdeviceptr p = managed(100 * MiB);
        // Like a library that lets a program use more than its share: one part on the device, the rest on the
        // host.
        OK(CU(cuMemAdvise)(p, 30 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
        OK(CU(cuMemAdvise)(p + 30 * MiB, 70 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
        OK(CU(cuMemAdvise_v2)(p + 30 * MiB, 70 * MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, device(0)));
        REQUIRE(free_now() == before);
        const CUfunction f = spin();
        const size_t loaded = free_now();
        OK(launch(f, nullptr, 1000));
        OK(CU(cuMemsetD8_v2)(p, 1, 100 * MiB));
        REQUIRE(free_now() == loaded - 30 * MiB);
        REQUIRE(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 30 * MiB) == 0);
        REQUIRE(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p + 30 * MiB, MiB) == CU_DEVICE_CPU);
        REQUIRE(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 100 * MiB) == CU_DEVICE_INVALID);
        REQUIRE(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, p, MiB) == CU_MEM_LOCATION_TYPE_DEVICE);
        REQUIRE(told(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, MiB) == CU_DEVICE_INVALID);
        REQUIRE(told(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, MiB) == 0);
        OK(CU(cuMemAdvise)(p, MiB, CU_MEM_ADVISE_SET_READ_MOSTLY, CU_DEVICE_INVALID));
        REQUIRE(told(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, MiB) == 1);
        int who[3] = {};
        OK(CU(cuMemRangeGetAttribute)(who, sizeof who, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p + 40 * MiB, 1));
        REQUIRE(who[0] == 0 && who[1] == CU_DEVICE_INVALID && who[2] == CU_DEVICE_INVALID);
        // Advice for another location moves it away; when the advice is removed, it returns.
        OK(CU(cuMemAdvise)(p, 30 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
        REQUIRE(free_now() == loaded);
        OK(CU(cuMemAdvise)(p, 100 * MiB, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 0));
        OK(launch(f, nullptr, 1000));
        REQUIRE(free_now() == loaded - 100 * MiB);
        CUdeviceptr d = 0;
        OK(CU(cuMemAlloc_v2)(&d, MiB));
        constexpr auto prefer_location = CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
        REQUIRE(CU(cuMemAdvise)(d, MiB, prefer_location, 0) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(CU(cuMemAdvise)(p, 101 * MiB, prefer_location, 0) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(CU(cuMemAdvise)(p, MiB, prefer_location, 9) == CUDA_ERROR_INVALID_DEVICE);
        REQUIRE(CU(cuMemAdvise)(p, MiB, static_cast<CUmem_advise>(77), 0) == CUDA_ERROR_INVALID_VALUE);
      }));
}

TEST_F(DriverTest, a_prefetch_moves_managed_memory_between_host_and_devices_in_realistic_time) {
  EXPECT_EQ(
      0, run([] {
        begin();
        CUevent a = nullptr, b = nullptr;
        OK(CU(cuEventCreate)(&a, 0));
        OK(CU(cuEventCreate)(&b, 0));
        const size_t here = free_now(), there = free_on(1);
        const CUdeviceptr p = managed(GiB);
        OK(CU(cuEventRecord)(a, nullptr));
        OK(CU(cuMemPrefetchAsync_v2)(p, GiB / 2, device(0), 0, nullptr));
        OK(CU(cuEventRecord)(b, nullptr));
        OK(CU(cuCtxSynchronize)());
        float took = 0;  // ms.
        OK(CU(cuEventElapsedTime)(&took, a, b));
        REQUIRE(took > 10);  // Half a GiB at 12 to 26 GB/s.
        REQUIRE(free_now() == here - GiB / 2);
        REQUIRE(told(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, GiB / 2) == 0);
        OK(CU(cuMemPrefetchAsync)(p, GiB, 1, nullptr));
        REQUIRE(free_now() == here && free_on(1) == there - GiB);
        OK(CU(cuMemPrefetchAsync)(p, GiB, CU_DEVICE_CPU, nullptr));
        REQUIRE(free_now() == here && free_on(1) == there);
        CUdeviceptr both[] = {p, p + 100 * MiB};
        size_t sizes[] = {10 * MiB, 20 * MiB}, first_of[] = {0, 1};
        CUmemLocation to[] = {device(0), device(1)};
        OK(CU(cuMemPrefetchBatchAsync)(both, sizes, 2, to, first_of, 2, 0, nullptr));
        REQUIRE(free_now() == here - 10 * MiB && free_on(1) == there - 20 * MiB);
        OK(CU(cuMemDiscardBatchAsync)(both, sizes, 1, 0, nullptr));
        REQUIRE(free_now() == here && free_on(1) == there - 20 * MiB);
        REQUIRE(CU(cuMemPrefetchAsync_v2)(p, GiB, host_location, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(CU(cuMemPrefetchAsync)(p, GiB, 2, nullptr) == CUDA_ERROR_INVALID_DEVICE);
        REQUIRE(CU(cuMemPrefetchAsync)(p, 2 * GiB, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
      }));
}

// Memory that a context brought to a device leaves the device with that context, even if another context made
// the allocation.
TEST_F(DriverTest, managed_memory_leaves_a_device_with_the_context_that_brought_it) {
  EXPECT_EQ(0, run([] {
              const CUcontext first = begin();
              const CUdeviceptr p = managed(100 * MiB);
              CUcontext second = nullptr;
              OK(CU(cuCtxCreate_v2)(&second, 0, 1));
              REQUIRE(free_now() == usable_bytes - context_size);
              OK(CU(cuMemPrefetchAsync)(p, 100 * MiB, 1, nullptr));
              REQUIRE(free_now() == usable_bytes - context_size - 100 * MiB);
              OK(CU(cuCtxDestroy_v2)(second));
              OK(CU(cuCtxSetCurrent)(first));
              OK(CU(cuMemsetD8_v2)(p, 3, MiB));
              REQUIRE(free_now() == usable_bytes - context_size - 2 * MiB);
              REQUIRE(*reinterpret_cast<unsigned char*>(p) == 3);
            }));
}

TEST_F(DriverTest, allocations_of_managed_memory_fail_if_such_failures_are_injected) {
  fault("out-of-memory --count 1 --device 0");
  EXPECT_EQ(0, run([] {
              CUdeviceptr p = 0;
              begin();
              REQUIRE(CU(cuMemAllocManaged)(&p, MiB, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
              OK(CU(cuMemAllocManaged)(&p, MiB, CU_MEM_ATTACH_GLOBAL));
            }));
}

}  // namespace
}  // namespace carve::sim
