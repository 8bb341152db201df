#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "guest/memory/charged.h"
#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

constexpr uint64_t step = 32 << 20;

// The pools of a fake driver. An allocation takes the first free block that is large enough; otherwise
// `reserved` grows in steps. A synchronisation releases the memory above the threshold. `scattered` means
// that all free blocks are too small.
struct FakePool {
  uint64_t reserved = 0, used = 0, threshold = 0;
  bool scattered = false;
  std::map<CUdeviceptr, uint64_t> live, unused;

  CUdeviceptr take(uint64_t bytes) {
    auto range = std::ranges::find_if(unused, [&](const auto& r) { return r.second >= bytes; });
    if (range == unused.end() || scattered) {
      const uint64_t more = (bytes + step - 1) / step * step;
      world->next = (world->next + 2 * step - 1) / step * step;
      range = unused.emplace(world->next, more).first;
      world->next += more;
      reserved += more;
    }
    const auto [at, size] = *range;
    unused.erase(range);
    if (size > bytes) unused[at + bytes] = size - bytes;
    live[at] = bytes;
    used += bytes;
    return at;
  }
  void give(CUdeviceptr at) {
    uint64_t bytes = live[at];
    live.erase(at);
    used -= bytes;
    if (auto next = unused.find(at + bytes); next != unused.end()) {
      bytes += next->second;
      unused.erase(next);
    }
    auto before = unused.lower_bound(at);
    if (before != unused.begin() && std::prev(before)->first + std::prev(before)->second == at) {
      std::prev(before)->second += bytes;
    } else {
      unused[at] = bytes;
    }
  }
  void shrink(uint64_t keep) {
    for (auto r = unused.begin(); r != unused.end();) {
      if (r->first % step != 0 || r->second % step != 0 || reserved - std::min(reserved, keep) < r->second) {
        ++r;
        continue;
      }
      reserved -= r->second;
      r = unused.erase(r);
    }
  }
};
std::map<uint64_t, FakePool>* pools = nullptr;
uint64_t most = 0;
bool capturing = false;

FakePool& fake(CUmemoryPool handle) { return (*pools)[reinterpret_cast<uint64_t>(handle)]; }

CUresult take_piece(CUdeviceptr* out, size_t bytes, CUmemoryPool handle) {
  std::lock_guard lock(world->mutex);
  if (capturing) {
    *out = 0x42;
    return CUDA_SUCCESS;
  }
  *out = fake(handle).take((bytes + 511) / 512 * 512);
  uint64_t all = 0;
  for (auto& [id, p] : *pools) all += p.reserved;
  most = std::max(most, all);
  return CUDA_SUCCESS;
}

CUresult free_piece(CUdeviceptr pointer) {
  {
    std::lock_guard lock(world->mutex);
    for (auto& [id, pool] : *pools) {
      if (!pool.live.contains(pointer)) continue;
      pool.give(pointer);
      return CUDA_SUCCESS;
    }
  }
  return driver_free(pointer);
}

class Pools : public DriverTest {
 protected:
  Pools() {
    pools = &pools_;
    most = 0;
    capturing = false;
    on<&cuDeviceGetMemPool>([](CUmemoryPool* out, CUdevice d) {
      *out = reinterpret_cast<CUmemoryPool>(0x100u + static_cast<unsigned>(d));
      return CUDA_SUCCESS;
    });
    on<&cuMemPoolCreate>([](CUmemoryPool* out, const CUmemPoolProps*) {
      static uint64_t next = 0x500;
      *out = reinterpret_cast<CUmemoryPool>(++next);
      return CUDA_SUCCESS;
    });
    on<&cuMemPoolDestroy>([](CUmemoryPool) { return CUDA_SUCCESS; });
    on<&cuMemPoolImportFromShareableHandle>(
        [](CUmemoryPool* out, void*, CUmemAllocationHandleType, unsigned long long) {
          *out = reinterpret_cast<CUmemoryPool>(0x900);
          return CUDA_SUCCESS;
        });
    on<&cuMemAllocAsync>([](CUdeviceptr* p, size_t n, CUstream) {
      return take_piece(p, n, reinterpret_cast<CUmemoryPool>(0x100u + static_cast<unsigned>(current_device)));
    });
    on<&cuMemAllocFromPoolAsync>(
        [](CUdeviceptr* p, size_t n, CUmemoryPool pool, CUstream) { return take_piece(p, n, pool); });
    on<&cuMemFreeAsync>([](CUdeviceptr p, CUstream) { return free_piece(p); });
    on<&cuMemFree_v2>([](CUdeviceptr p) { return free_piece(p); });
    on<&cuMemPoolGetAttribute>([](CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
      std::lock_guard lock(world->mutex);
      *static_cast<cuuint64_t*>(value) =
          attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? fake(pool).reserved : fake(pool).used;
      return CUDA_SUCCESS;
    });
    on<&cuMemPoolSetAttribute>([](CUmemoryPool pool, CUmemPool_attribute, void* value) {
      std::lock_guard lock(world->mutex);
      fake(pool).threshold = *static_cast<cuuint64_t*>(value);
      return CUDA_SUCCESS;
    });
    on<&cuMemPoolTrimTo>([](CUmemoryPool pool, size_t keep) {
      std::lock_guard lock(world->mutex);
      fake(pool).shrink(keep);
      return CUDA_SUCCESS;
    });
    on<&cuStreamIsCapturing>([](CUstream, CUstreamCaptureStatus* status) {
      *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
      return CUDA_SUCCESS;
    });
    on<&cuStreamSynchronize>([](CUstream) {
      std::lock_guard lock(world->mutex);
      for (auto& [id, pool] : *pools) pool.shrink(pool.threshold);
      return CUDA_SUCCESS;
    });
  }
  void keep_all(CUmemoryPool pool) {
    cuuint64_t all = UINT64_MAX;
    cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
  }
  CUmemoryPool own_pool(CUmemLocationType type = CU_MEM_LOCATION_TYPE_DEVICE, int device = 0) {
    CUmemPoolProps props = {};
    props.location = {type, device};
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    return pool;
  }
  std::map<uint64_t, FakePool> pools_;
};

TEST_F(Pools, are_charged_for_what_they_reserve_until_a_synchronisation_releases_it) {
  Attached slice(1, 100 * MiB);
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(cuMemAllocAsync(&a, MiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), step);
  ASSERT_EQ(cuMemAllocAsync(&b, MiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), step) << "the memory was already reserved";
  EXPECT_EQ(cuMemFreeAsync(a, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(b, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), step);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Pools, never_reserve_more_than_the_quota_even_temporarily) {
  Attached slice(1, 100 * MiB);
  std::vector<CUdeviceptr> suballocations;
  CUdeviceptr p = 0;
  while (cuMemAllocAsync(&p, 3 * MiB, nullptr) == CUDA_SUCCESS) suballocations.push_back(p);
  EXPECT_EQ(suballocations.size(), 30u) << "3 chunks of 32 MiB with 10 suballocations each";
  EXPECT_EQ(most, 3 * step);
  EXPECT_EQ(slice.used(), 3 * step);
  EXPECT_EQ(cuMemAlloc_v2(&p, 5 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&p, 4 * MiB), CUDA_SUCCESS);
}

TEST_F(Pools, release_unused_memory_to_an_allocation_that_needs_it) {
  Attached slice(1, 100 * MiB);
  CUmemoryPool pool = own_pool();
  keep_all(pool);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&p, 90 * MiB, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 3 * step) << "the threshold keeps it";
  ASSERT_EQ(cuMemAlloc_v2(&p, 50 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 50 * MiB);
  ASSERT_EQ(cuMemAllocAsync(&p, 30 * MiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 50 * MiB + step);
}

TEST_F(Pools, serve_allocations_from_unused_memory_at_the_quota) {
  Attached slice(1, 64 * MiB);
  CUmemoryPool pool = own_pool();
  keep_all(pool);
  CUdeviceptr a = 0, b = 0, c = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&a, 40 * MiB, pool, nullptr), CUDA_SUCCESS);
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(cuMemAllocFromPoolAsync(&b, (20 + round % 3) * MiB, pool, nullptr), CUDA_SUCCESS) << "churn";
    ASSERT_EQ(cuMemFreeAsync(b, nullptr), CUDA_SUCCESS);
  }
  EXPECT_EQ(cuMemAllocFromPoolAsync(&c, 24 * MiB, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 64 * MiB);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&b, MiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(most, 64 * MiB) << "the quota was exceeded temporarily";
}

TEST_F(Pools, refuse_an_allocation_that_makes_the_pool_grow_unexpectedly) {
  Attached slice(1, 64 * MiB);
  CUmemoryPool pool = own_pool();
  keep_all(pool);
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&a, 40 * MiB, pool, nullptr), CUDA_SUCCESS);
  fake(pool).scattered = true;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&b, 10 * MiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(fake(pool).reserved, 64 * MiB);
  EXPECT_EQ(slice.used(), 64 * MiB);
  EXPECT_EQ(fake(pool).live.size(), 1u);
}

TEST_F(Pools, allow_suballocations_and_linear_memory_to_be_freed_by_either_call) {
  Attached slice(1, 100 * MiB);
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(cuMemAllocAsync(&a, MiB, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&b, MiB), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(b, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), step);
  EXPECT_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Pools, stay_charged_after_destruction_until_the_last_suballocation_is_freed) {
  Attached slice(1, 100 * MiB);
  CUmemoryPool pool = own_pool(), empty = own_pool();
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&a, MiB, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocFromPoolAsync(&b, MiB, empty, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(b, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * step);
  EXPECT_EQ(cuMemPoolDestroy(empty), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), step);
  EXPECT_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Pools, are_not_charged_if_imported_or_in_host_memory) {
  Attached slice(1, 10 * MiB);
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 50 * MiB, own_pool(CU_MEM_LOCATION_TYPE_HOST), nullptr),
            CUDA_SUCCESS);
  CUmemoryPool imported = nullptr;
  ASSERT_EQ(cuMemPoolImportFromShareableHandle(&imported, nullptr, CU_MEM_HANDLE_TYPE_NONE, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 50 * MiB, imported, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Pools, are_charged_to_the_device_of_their_location) {
  Attached slice(2, 100 * MiB);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&p, MiB, own_pool(CU_MEM_LOCATION_TYPE_DEVICE, 1), nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(slice.used(0), 0u);
  EXPECT_EQ(slice.used(1), step);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, MiB, own_pool(CU_MEM_LOCATION_TYPE_DEVICE, 7), nullptr),
            CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Pools, are_charged_to_the_device_of_their_locality_domain) {
  Attached slice(2, 100 * MiB);
  CUdeviceptr p = 0;
  const CUmemoryPool pool = own_pool(CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 1 | 1 << 8);
  ASSERT_EQ(cuMemAllocFromPoolAsync(&p, MiB, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(0), 0u);
  EXPECT_EQ(slice.used(1), step);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 120 * MiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Pools, are_charged_to_the_current_device_if_managed) {
  Attached slice(1, 100 * MiB);
  uint64_t expected = 0;
  for (const CUmemLocationType preferred : {CU_MEM_LOCATION_TYPE_NONE, CU_MEM_LOCATION_TYPE_HOST}) {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    props.location.type = preferred;
    CUmemoryPool pool = nullptr;
    CUdeviceptr p = 0;
    ASSERT_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocFromPoolAsync(&p, MiB, pool, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(slice.used(), expected += step) << preferred;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 120 * MiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  }
}

TEST_F(Pools, are_not_charged_for_a_captured_allocation) {
  Attached slice(1, MiB);
  capturing = true;
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocAsync(&p, 50 * MiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Pools, stay_within_the_quota_when_threads_race_and_are_empty_afterwards) {
  Attached slice(1, 5 * step + MiB);
  std::vector<std::jthread> threads;
  std::atomic<bool> over{false};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<CUdeviceptr> this_thread;
      for (int i = 0; i < 2000; ++i) {
        CUdeviceptr p = 0;
        if (cuMemAllocAsync(&p, static_cast<size_t>(1 + (i * 7 + t) % 20) * MiB, nullptr) == CUDA_SUCCESS)
          this_thread.push_back(p);
        if (slice.used() > 5 * step + MiB) over = true;
        if (this_thread.size() > 3) {
          cuMemFreeAsync(this_thread.front(), nullptr);
          this_thread.erase(this_thread.begin());
        }
      }
      for (CUdeviceptr p : this_thread) cuMemFreeAsync(p, nullptr);
    });
  }
  threads.clear();
  EXPECT_FALSE(over);
  EXPECT_LE(most, 5 * step);
  cuStreamSynchronize(nullptr);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Pools, are_refused_beyond_the_number_that_can_be_recorded) {
  Attached slice(1, 100 * MiB);
  CUdeviceptr p = 0;
  CUmemoryPool last = nullptr;
  for (unsigned i = 0; i < max_pools + 5; ++i) last = own_pool();
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, MiB, last, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Pools, count_released_memory_as_free_in_memory_information) {
  Attached slice(1, 60 * MiB);
  CUdeviceptr p = 0;
  size_t free_bytes = 0, total = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, MiB, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 28 * MiB);
  cuMemFreeAsync(p, nullptr);
  for (auto& [id, pool] : pools_) pool.shrink(0);  // Detected although this library is not called.
  ASSERT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 60 * MiB);
}

}  // namespace
}  // namespace carve::guest
