#include <thread>
#include <vector>

#include "guest/memory/charged.h"
#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

using Allocations = DriverTest;

TEST(Charge, is_the_size_that_the_driver_takes) {
  EXPECT_EQ(charge_of(1_B), 512_B);
  EXPECT_EQ(charge_of(512_B), 512_B);
  EXPECT_EQ(charge_of(1_MiB), 1_MiB);
  EXPECT_EQ(charge_of({(1 << 20) + 1}), 2_MiB);
  EXPECT_EQ(charge_of({(2 << 20) + 1}), 4_MiB);
}

TEST_F(Allocations, are_charged_rounded_up_and_released) {
  Attached slice;
  CUdeviceptr small = 0, large = 0;
  EXPECT_EQ(cuMemAlloc_v2(&small, 100), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 512u);
  EXPECT_EQ(cuMemAlloc_v2(&large, 3 << 20), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 512u + (4 << 20));
  EXPECT_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Allocations, over_the_quota_are_rejected_before_the_driver_is_called) {
  Attached slice(1, 4 << 20);
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAlloc_v2(&p, (4 << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(p, 0u);
  EXPECT_EQ(cuMemAlloc_v2(&p, 4 << 20), CUDA_SUCCESS);
}

TEST_F(Allocations, that_the_quota_refuses_record_their_time_for_the_agent) {
  Attached slice(1, 4 << 20);
  CUdeviceptr p = 0;
  world->next_result = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(cuMemAlloc_v2(&p, 100), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(slice.report->quota_refused_ns, 0u) << "the driver refused it";
  EXPECT_EQ(cuMemAlloc_v2(&p, 5 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(slice.report->quota_refused_ns, 0u);
}

TEST_F(Allocations, are_not_charged_if_the_driver_refuses_them) {
  Attached slice;
  CUdeviceptr p = 0;
  world->next_result = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(cuMemAlloc_v2(&p, 100), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc_v2(nullptr, 100), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Allocations, stay_charged_if_the_free_fails) {
  Attached slice;
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 100), CUDA_SUCCESS);
  world->next_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(slice.used(), 512u);
  EXPECT_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Allocations, pass_frees_of_unknown_pointers_to_the_driver) {
  Attached slice;
  world->live[0x1234000] = 5;
  EXPECT_EQ(cuMemFree_v2(0x1234000), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(0x99), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Allocations, are_released_by_an_async_free) {
  Attached slice;
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Allocations, are_charged_by_the_returned_pitch) {
  Attached slice(1, 64 << 20);
  CUdeviceptr p = 0;
  size_t pitch = 0;
  ASSERT_EQ(cuMemAllocPitch_v2(&p, &pitch, 100, 1000, 4), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 512u * 1000);
  // A device that pads rows to 4,096 bytes, which is more than was reserved.
  on<&cuMemAllocPitch_v2>([](CUdeviceptr* out, size_t* row, size_t, size_t h, unsigned) {
    *row = 4096;
    return driver_allocate(out, *row * h);
  });
  CUdeviceptr q = 0;
  ASSERT_EQ(cuMemAllocPitch_v2(&q, &pitch, 100, 1000, 4), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 512u * 1000 + (4 << 20));
  slice.control->devices[0].quota = slice.used() + 512 * 1000;
  const size_t live = world->live.size();
  EXPECT_EQ(cuMemAllocPitch_v2(&q, &pitch, 100, 1000, 4), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world->live.size(), live) << "memory that could not be charged is freed";
  EXPECT_EQ(cuMemAllocPitch_v2(&q, &pitch, SIZE_MAX, SIZE_MAX, 4), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Allocations, of_managed_memory_are_charged_in_full) {
  Attached slice(1, 4 << 20);
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocManaged(&p, 5 << 20, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocManaged(&p, 3 << 20, 1), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 4u << 20);
}

TEST_F(Allocations, are_charged_to_the_device_of_the_current_context) {
  Attached slice(2);
  CUdeviceptr p = 0;
  current_device = 1;
  ASSERT_EQ(cuMemAlloc_v2(&p, 100), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(0), 0u);
  EXPECT_EQ(slice.used(1), 512u);
  current_device = 0;
  EXPECT_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(1), 0u);
  current_device = 5;
  EXPECT_EQ(cuMemAlloc_v2(&p, 100), CUDA_ERROR_OUT_OF_MEMORY) << "not granted";
}

TEST_F(Allocations, return_the_drivers_own_error_without_a_context) {
  Attached slice;
  on<&cuCtxGetDevice>([](CUdevice*) { return CUDA_ERROR_INVALID_CONTEXT; });
  on<&cuMemAlloc_v2>([](CUdeviceptr* p, size_t) {
    *p = 0;
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  });
  CUdeviceptr p = 77;
  EXPECT_EQ(cuMemAlloc_v2(&p, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(p, 0u);
}

TEST_F(Allocations, are_undone_if_their_device_is_unknown) {
  Attached slice;
  on<&cuCtxGetDevice>([](CUdevice*) { return CUDA_ERROR_INVALID_CONTEXT; });
  static int freed = 0;
  on<&cuMemFree_v2>([](CUdeviceptr) { return ++freed, CUDA_SUCCESS; });
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAlloc_v2(&p, 100), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(freed, 1);
}

TEST_F(Allocations, zero_the_results_over_the_quota_as_the_driver_does) {
  Attached slice(1, 1 << 20);
  CUdeviceptr p = 77;
  EXPECT_EQ(cuMemAlloc_v2(&p, 8 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(p, 0u);
  size_t pitch = 77;
  p = 77;
  EXPECT_EQ(cuMemAllocPitch_v2(&p, &pitch, 1 << 20, 8, 4), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(p, 0u);
  EXPECT_EQ(pitch, 0u);
  EXPECT_EQ(cuMemAlloc_v2(nullptr, 8 << 20), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Allocations, zero_the_memory_information_on_an_error_as_the_driver_does) {
  Attached slice;
  on<&cuMemGetInfo_v2>([](size_t* free, size_t* total) {
    *free = *total = 0;
    return CUDA_ERROR_INVALID_CONTEXT;
  });
  size_t free = 77, total = 77;
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(free, 0u);
  EXPECT_EQ(total, 0u);
}

TEST_F(Allocations, never_exceed_the_quota_when_threads_race) {
  Attached slice(1, 8 << 20);
  std::vector<std::jthread> threads;
  std::atomic<bool> over{false};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::vector<CUdeviceptr> this_thread;
      for (int i = 0; i < 3000; ++i) {
        CUdeviceptr p = 0;
        if (cuMemAlloc_v2(&p, static_cast<size_t>(1 + (i * 37 + t) % 700) << 10) == CUDA_SUCCESS)
          this_thread.push_back(p);
        if (slice.used() > 8 << 20) over = true;
        if (this_thread.size() > 3) {
          cuMemFree_v2(this_thread.front());
          this_thread.erase(this_thread.begin());
        }
      }
      for (CUdeviceptr p : this_thread) cuMemFree_v2(p);
    });
  }
  threads.clear();
  EXPECT_FALSE(over);
  EXPECT_EQ(slice.used(), 0u);
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAlloc_v2(&p, 8 << 20), CUDA_SUCCESS);
}

TEST_F(Allocations, report_the_slices_memory_as_memory_information) {
  Attached slice(1, 10 << 20);
  size_t free_bytes = 0, total = 0;
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 4 << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 10u << 20);
  EXPECT_EQ(free_bytes, 6u << 20);
  EXPECT_EQ(cuMemGetInfo_v2(nullptr, &total), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetInfo_v2(nullptr, nullptr), CUDA_SUCCESS);
  slice.control->devices[0].quota = 1 << 20;  // The agent lowered it below the bytes in use.
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 0u);
  EXPECT_EQ(total, 1u << 20);
  slice.control->devices[0].quota = 1 << 30;  // More than the device has.
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 60u << 20);
  EXPECT_EQ(total, 64u << 20);
  slice.control->devices[0].memory = shm::Memory::not_limited;
  EXPECT_EQ(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 64u << 20);
}

TEST_F(Allocations, report_the_smaller_of_quota_and_device_as_total_memory) {
  Attached slice(1, 10 << 20);
  size_t total = 0;
  EXPECT_EQ(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 10u << 20);
  EXPECT_EQ(cuDeviceTotalMem_v2(&total, 7), CUDA_SUCCESS);
  EXPECT_EQ(total, 0u) << "not granted";
}

TEST_F(Allocations, count_the_slices_devices_in_the_drivers_order) {
  Attached slice(2);
  std::swap(slice.control->devices[0].uuid[0], slice.control->devices[1].uuid[0]);
  slice.control->devices[1].uuid[0] = 8;  // The slice has the driver's devices 7 and 1.
  int count = 0;
  CUdevice device = -1;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cuDeviceGet(&device, 1), CUDA_SUCCESS);
  EXPECT_EQ(device, 7);
  EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace
}  // namespace carve::guest
