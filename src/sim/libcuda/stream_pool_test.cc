// Pools through the real library: how much they reserve, when it is released, and which memory may be reused.
#include <cstring>
#include <vector>

#include "sim/libcuda/stream_fixture.h"

namespace carve::sim {
namespace {

uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  OK(CU(cuMemPoolGetAttribute)(pool, which, &value));
  return value;
}
uint64_t reserved(CUmemoryPool pool) { return attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }
uint64_t used(CUmemoryPool pool) { return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }
void set(CUmemoryPool pool, CUmemPool_attribute which, cuuint64_t value) {
  OK(CU(cuMemPoolSetAttribute)(pool, which, &value));
}

CUmemoryPool make_pool(size_t most = 0, CUmemLocationType where = CU_MEM_LOCATION_TYPE_DEVICE) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {where, 0};
  props.maxSize = most;
  CUmemoryPool pool = nullptr;
  OK(CU(cuMemPoolCreate)(&pool, &props));
  return pool;
}

TEST_F(DriverTest, a_pool_reserves_multiples_of_32_mib_and_releases_them_at_a_synchronisation) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              CUmemoryPool pool = nullptr, current = nullptr;
              OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
              OK(CU(cuDeviceGetMemPool)(&current, 0));
              REQUIRE(pool == current);
              CUdeviceptr a = 0, b = 0;
              OK(CU(cuMemAllocAsync)(&a, 1000, nullptr));
              REQUIRE(before - free_now() == 32 * MiB && reserved(pool) == 32 * MiB);
              OK(CU(cuMemAllocAsync)(&b, 33 * MiB, nullptr));
              REQUIRE(before - free_now() == 96 * MiB && used(pool) == 33 * MiB + 1024);
              std::vector<char> in(33 * MiB, 'x'), out(33 * MiB);
              OK(CU(cuMemcpyHtoD_v2)(b, in.data(), in.size()));
              OK(CU(cuMemcpyDtoH_v2)(out.data(), b, out.size()));
              REQUIRE(in == out);
              OK(CU(cuMemFreeAsync)(b, nullptr));
              REQUIRE(CU(cuMemFreeAsync)(b, nullptr) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuMemcpyHtoD_v2)(b, in.data(), 1) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuStreamSynchronize)(nullptr));
              REQUIRE(before - free_now() == 32 * MiB);
              OK(CU(cuMemFree_v2)(a));
              OK(CU(cuCtxSynchronize)());
              REQUIRE(free_now() == before && reserved(pool) == 0);
              REQUIRE(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 96 * MiB);
              set(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
              REQUIRE(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 0);
            }));
}

TEST_F(DriverTest, a_release_threshold_keeps_memory_until_a_trim) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              const CUmemoryPool pool = make_pool();
              set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
              OK(CU(cuDeviceSetMemPool)(0, pool));
              CUdeviceptr p[4];
              for (CUdeviceptr& x : p) OK(CU(cuMemAllocAsync)(&x, 32 * MiB, nullptr));
              for (CUdeviceptr x : p) OK(CU(cuMemFreeAsync)(x, nullptr));
              OK(CU(cuCtxSynchronize)());
              REQUIRE(before - free_now() == 128 * MiB && used(pool) == 0);
              OK(CU(cuMemPoolTrimTo)(pool, 64 * MiB));
              REQUIRE(before - free_now() == 64 * MiB);
              OK(CU(cuMemPoolTrimTo)(pool, 0));
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, a_stream_reuses_its_own_memory_immediately_and_that_of_others_after_an_event) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              const CUmemoryPool pool = make_pool();
              CUstream s = nullptr, t = nullptr;
              CUevent e = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamCreate)(&t, CU_STREAM_NON_BLOCKING));
              OK(CU(cuEventCreate)(&e, 0));
              CUdeviceptr a = 0, b = 0, c = 0;
              OK(CU(cuMemAllocFromPoolAsync)(&a, 32 * MiB, pool, s));
              const StreamBlocker blocker;
              blocker.close(s);
              OK(launch(f, s, 1 * ms));
              OK(CU(cuMemFreeAsync)(a, s));
              OK(CU(cuMemAllocFromPoolAsync)(&b, 32 * MiB, pool, s));
              REQUIRE(b == a && reserved(pool) == 32 * MiB);
              OK(CU(cuMemFreeAsync)(b, s));
              // The kernel of s may still use the memory, so t gets another chunk,
              OK(CU(cuMemAllocFromPoolAsync)(&c, 32 * MiB, pool, t));
              REQUIRE(c != a && reserved(pool) == 64 * MiB);
              OK(CU(cuMemFreeAsync)(c, t));
              OK(CU(cuStreamSynchronize)(t));
              REQUIRE(reserved(pool) == 32 * MiB);
              // unless t waits for the work of s.
              OK(CU(cuEventRecord)(e, s));
              OK(CU(cuStreamWaitEvent)(t, e, 0));
              OK(CU(cuMemAllocFromPoolAsync)(&c, 32 * MiB, pool, t));
              REQUIRE(c == a && reserved(pool) == 32 * MiB);
              blocker.open();
              OK(CU(cuCtxSynchronize)());
            }));
}

TEST_F(DriverTest, a_pool_at_its_limit_waits_for_memory_that_another_stream_frees) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              const CUmemoryPool pool = make_pool(64 * MiB);
              CUstream s = nullptr, t = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamCreate)(&t, CU_STREAM_NON_BLOCKING));
              CUdeviceptr a = 0, b = 0;
              REQUIRE(CU(cuMemAllocFromPoolAsync)(&a, 65 * MiB, pool, s) == CUDA_ERROR_OUT_OF_MEMORY);
              OK(CU(cuMemAllocFromPoolAsync)(&a, 64 * MiB, pool, s));
              REQUIRE(CU(cuMemAllocFromPoolAsync)(&b, 1, pool, s) == CUDA_ERROR_OUT_OF_MEMORY);
              const StreamBlocker blocker;
              blocker.close(s);
              OK(launch(f, s, 1 * ms));
              OK(CU(cuMemFreeAsync)(a, s));
              set(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
              REQUIRE(CU(cuMemAllocFromPoolAsync)(&b, 64 * MiB, pool, t) == CUDA_ERROR_OUT_OF_MEMORY);
              set(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 1);
              OK(CU(cuMemAllocFromPoolAsync)(&b, 64 * MiB, pool, t));
              REQUIRE(b == a);
              REQUIRE(CU(cuStreamQuery)(t) == CUDA_ERROR_NOT_READY);  // It waits for the kernel of s.
              blocker.open();
              OK(CU(cuStreamSynchronize)(t));
              OK(CU(cuStreamQuery)(s));
            }));
}

TEST_F(DriverTest, a_destroyed_pool_exists_until_its_memory_is_free) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              CUmemoryPool pool = make_pool(), standard = nullptr, now = nullptr;
              OK(CU(cuDeviceGetDefaultMemPool)(&standard, 0));
              OK(CU(cuDeviceSetMemPool)(0, pool));
              CUdeviceptr a = 0;
              OK(CU(cuMemAllocAsync)(&a, MiB, nullptr));
              OK(CU(cuMemPoolDestroy)(pool));
              OK(CU(cuDeviceGetMemPool)(&now, 0));
              REQUIRE(now == standard);
              REQUIRE(CU(cuMemPoolDestroy)(pool) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuMemPoolDestroy)(standard) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuMemsetD8_v2)(a, 1, MiB));
              REQUIRE(before - free_now() == 32 * MiB);
              OK(CU(cuMemFreeAsync)(a, nullptr));
              OK(CU(cuStreamSynchronize)(nullptr));
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, memory_of_either_allocator_can_be_freed_by_either_call) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              const size_t before = free_now();
              CUdeviceptr a = 0, b = 0;
              OK(CU(cuMemAlloc_v2)(&a, 100 * MiB));
              OK(CU(cuMemAllocAsync)(&b, 100 * MiB, CU_STREAM_PER_THREAD));
              OK(launch(f, nullptr, 5'000'000));
              OK(CU(cuMemFreeAsync)(a, nullptr));
              OK(CU(cuMemFree_v2)(b));
              OK(CU(cuCtxSynchronize)());
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, a_pool_of_host_memory_takes_no_device_memory) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              const CUmemoryPool pool = make_pool(0, CU_MEM_LOCATION_TYPE_HOST);
              CUdeviceptr a = 0;
              OK(CU(cuMemAllocFromPoolAsync)(&a, MiB, pool, nullptr));
              REQUIRE(free_now() == before && reserved(pool) == 32 * MiB);
              std::memset(reinterpret_cast<void*>(a), 7, MiB);
              unsigned type = 0;
              OK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
              REQUIRE(type == CU_MEMORYTYPE_HOST);
              OK(CU(cuMemFreeAsync)(a, nullptr));
            }));
}

TEST_F(DriverTest, pointers_report_their_pool_and_access_can_be_set) {
  EXPECT_EQ(0, run([] {
              begin();
              CUmemoryPool pool = make_pool(), other = nullptr;
              CUdeviceptr a = 0;
              OK(CU(cuMemAllocFromPoolAsync)(&a, 100, pool, nullptr));
              OK(CU(cuPointerGetAttribute)(&other, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a));
              REQUIRE(other == pool);
              CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
              CUmemLocation own = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, peer = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
              OK(CU(cuMemPoolGetAccess)(&flags, pool, &own));
              REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
              OK(CU(cuMemPoolGetAccess)(&flags, pool, &peer));
              REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
              const CUmemAccessDesc grant = {peer, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
              OK(CU(cuMemPoolSetAccess)(pool, &grant, 1));
              OK(CU(cuMemPoolGetAccess)(&flags, pool, &peer));
              REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
              OK(CU(cuMemGetMemPool)(&other, &peer, CU_MEM_ALLOCATION_TYPE_PINNED));
              REQUIRE(other != pool);
            }));
}

TEST_F(DriverTest, pools_of_a_killed_process_are_released_even_without_a_context) {
  const Signal holds;
  const pid_t holder = start([&] {
    const CUcontext c = begin();
    CUdeviceptr a = 0;
    OK(CU(cuMemAllocAsync)(&a, 1000 * MiB, nullptr));
    OK(CU(cuCtxDestroy_v2)(c));
    holds.give();
    pause();
  });
  holds.take();
  EXPECT_EQ(0, run([&] {
              begin();
              const size_t with = free_now();
              kill(holder, SIGKILL);  // The holder's own parent reaps it.
              EVENTUALLY(free_now() == with + 1024 * MiB);
            }));
  EXPECT_EQ(128 + SIGKILL, finish(holder));
}

}  // namespace
}  // namespace carve::sim
