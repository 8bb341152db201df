#include <vector>

#include "guest/memory/charged.h"
#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

struct Advice {
  CUdeviceptr at;
  size_t bytes;
  CUmem_advise what;
  CUdevice where;
  bool operator==(const Advice&) const = default;
};
std::vector<Advice>* advice = nullptr;
int shares = 1, prefetches = 0;

class Spill : public DriverTest {
 protected:
  Spill() {
    advice = &advice_;
    shares = 1;
    prefetches = 0;
    on<&cuDeviceGetAttribute>([](int* value, CUdevice_attribute, CUdevice) {
      *value = shares;
      return CUDA_SUCCESS;
    });
    on<&cuMemAdvise>([](CUdeviceptr at, size_t bytes, CUmem_advise what, CUdevice where) {
      advice->push_back({at, bytes, what, where});
      return take_result();
    });
    on<&cuPointerGetAttribute>([](void* value, CUpointer_attribute, CUdeviceptr at) {
      for (const auto& [start, bytes] : world->live) {
        if (at < start || at >= start + bytes) continue;
        *static_cast<CUdeviceptr*>(value) = start;
        return CUDA_SUCCESS;
      }
      return CUDA_ERROR_INVALID_VALUE;
    });
    on<&cuMemPrefetchAsync>([](CUdeviceptr, size_t, CUdevice, CUstream) {
      ++prefetches;
      return CUDA_SUCCESS;
    });
    on<&cuMemPrefetchAsync_v2>([](CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) {
      ++prefetches;
      return CUDA_SUCCESS;
    });
  }
  static void allow(Attached& slice, uint64_t bytes) { slice.control->devices[0].spill = bytes; }
  static uint64_t on_host(Attached& slice) { return used(*slice.process, spilled(0)); }
  std::vector<Advice> advice_;
};

TEST_F(Spill, puts_the_part_of_an_allocation_beyond_the_quota_into_host_memory) {
  Attached slice(1, 10 * MiB);
  allow(slice, 20 * MiB);
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(cuMemAlloc_v2(&a, 6 * MiB), CUDA_SUCCESS);
  EXPECT_TRUE(advice_.empty());
  ASSERT_EQ(cuMemAlloc_v2(&b, 9 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 10 * MiB);
  EXPECT_EQ(on_host(slice), 6 * MiB);
  const std::vector<Advice> expected = {
      {b, 4 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0},
      {b + 4 * MiB, 5 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU},
      {b + 4 * MiB, 5 * MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, 0}};
  EXPECT_EQ(advice_, expected);
  EXPECT_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 6 * MiB);
  EXPECT_EQ(on_host(slice), 0u);
}

TEST_F(Spill, refuses_allocations_beyond_its_limit) {
  Attached slice(1, 10 * MiB);
  allow(slice, 20 * MiB);
  CUdeviceptr a = 0, b = 0;
  EXPECT_EQ(cuMemAlloc_v2(&a, 31 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(slice.used() + on_host(slice), 0u);
  ASSERT_EQ(cuMemAlloc_v2(&a, 30 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&b, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
  EXPECT_EQ(slice.used() + on_host(slice), 0u);
}

TEST_F(Spill, requires_permission_and_concurrent_managed_access) {
  Attached slice(1, 10 * MiB);
  CUdeviceptr a = 0;
  EXPECT_EQ(cuMemAlloc_v2(&a, 12 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  allow(slice, 20 * MiB);
  shares = 0;
  EXPECT_EQ(cuMemAlloc_v2(&a, 12 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  shares = 1;
  EXPECT_EQ(cuMemAlloc_v2(&a, 12 * MiB), CUDA_SUCCESS);
}

TEST_F(Spill, charges_nothing_if_the_driver_rejects_the_advice) {
  Attached slice(1, 10 * MiB);
  allow(slice, 20 * MiB);
  on<&cuMemAdvise>([](CUdeviceptr, size_t, CUmem_advise, CUdevice) { return CUDA_ERROR_INVALID_DEVICE; });
  CUdeviceptr a = 0;
  EXPECT_EQ(cuMemAlloc_v2(&a, 12 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(slice.used() + on_host(slice), 0u);
  EXPECT_TRUE(world->live.empty());
}

TEST_F(Spill, is_reported_as_memory_of_the_device) {
  Attached slice(1, 10 * MiB);
  allow(slice, 20 * MiB);
  size_t free_bytes = 0, total = 0;
  CUdeviceptr a = 0;
  ASSERT_EQ(cuMemAlloc_v2(&a, 12 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 30 * MiB);
  EXPECT_EQ(free_bytes, 18 * MiB);
  ASSERT_EQ(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 30 * MiB);
}

TEST_F(Spill, applies_to_managed_and_pitched_memory) {
  Attached slice(1, 10 * MiB);
  allow(slice, 40 * MiB);
  CUdeviceptr a = 0, b = 0;
  size_t pitch = 0;
  ASSERT_EQ(cuMemAllocManaged(&a, 12 * MiB, 1), CUDA_SUCCESS);
  EXPECT_EQ(on_host(slice), 2 * MiB);
  ASSERT_EQ(cuMemAllocPitch_v2(&b, &pitch, 1000, 4096, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 1024u);
  EXPECT_EQ(on_host(slice), 6 * MiB);
}

TEST_F(Spill, ignores_hints_that_would_move_spilled_memory_to_the_device) {
  Attached slice(1, 10 * MiB);
  allow(slice, 40 * MiB);
  CUdeviceptr near = 0, far = 0;
  ASSERT_EQ(cuMemAllocManaged(&near, 6 * MiB, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocManaged(&far, 12 * MiB, 1), CUDA_SUCCESS);
  advice_.clear();
  EXPECT_EQ(cuMemPrefetchAsync(far + 5 * MiB, MiB, 0, nullptr), CUDA_SUCCESS);
  const CUmemLocation domain = {CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 1 << 8};
  EXPECT_EQ(cuMemPrefetchAsync_v2(far, MiB, domain, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAdvise(far, 12 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAdvise(far, 12 * MiB, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_SUCCESS);
  EXPECT_EQ(prefetches, 0);
  EXPECT_TRUE(advice_.empty());
  EXPECT_EQ(cuMemPrefetchAsync(far, MiB, CU_DEVICE_CPU, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPrefetchAsync(near, MiB, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(prefetches, 2);
}

TEST_F(Spill, is_released_with_its_context_or_its_killed_process) {
  Attached slice(1, 10 * MiB, MiB);
  allow(slice, 40 * MiB);
  on<&cuCtxCreate_v2>([](CUcontext* c, unsigned, CUdevice) {
    *c = reinterpret_cast<CUcontext>(0x4440);
    return CUDA_SUCCESS;
  });
  on<&cuCtxDestroy_v2>([](CUcontext) { return CUDA_SUCCESS; });
  CUcontext context = nullptr;
  CUdeviceptr a = 0;
  ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  current_context = 0x4440;
  ASSERT_EQ(cuMemAlloc_v2(&a, 12 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 9 * MiB) << "a context of 1 MiB and four blocks of 2 MiB";
  EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(slice.used() + on_host(slice), 0u);
  current_context = 0x1000;
  ASSERT_EQ(cuMemAlloc_v2(&a, 30 * MiB), CUDA_SUCCESS);
  EXPECT_TRUE(shm::reclaim(slice.report->spill, slice.process->slot));
  EXPECT_EQ(on_host(slice), 0u);
}

}  // namespace
}  // namespace carve::guest
