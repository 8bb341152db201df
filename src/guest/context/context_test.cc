#include <thread>
#include <vector>

#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

constexpr uint64_t context_bytes = 1 << 20;
CUcontext handle(uint64_t n) { return reinterpret_cast<CUcontext>(n); }

class Contexts : public DriverTest {
 protected:
  Contexts() {
    on<&cuCtxCreate_v2>([](CUcontext* c, unsigned, CUdevice) {
      const CUresult r = take_result();
      if (r == CUDA_SUCCESS) *c = handle(0x2000 + 0x10u * static_cast<unsigned>(world->contexts++));
      return r;
    });
    on<&cuCtxDestroy_v2>([](CUcontext) { return take_result(); });
    on<&cuCtxDetach>([](CUcontext) { return take_result(); });
    on<&cuCtxAttach>([](CUcontext* c, unsigned) {
      *c = handle(0x2000);
      return take_result();
    });
    on<&cuDevicePrimaryCtxRetain>([](CUcontext* c, CUdevice) {
      std::lock_guard lock(world->mutex);
      const CUresult r = take_result();
      if (r != CUDA_SUCCESS) return r;
      ++world->primary_uses;
      *c = handle(0x1000);
      return r;
    });
    on<&cuDevicePrimaryCtxRelease_v2>([](CUdevice) {
      std::lock_guard lock(world->mutex);
      if (world->primary_uses == 0) return CUDA_ERROR_INVALID_CONTEXT;
      if (--world->primary_uses == 0) world->live.clear();
      return CUDA_SUCCESS;
    });
    on<&cuDevicePrimaryCtxReset_v2>([](CUdevice) {
      std::lock_guard lock(world->mutex);
      world->primary_uses = 0;
      world->live.clear();
      return CUDA_SUCCESS;
    });
    on<&cuDevicePrimaryCtxGetState>([](CUdevice, unsigned* flags, int* active) {
      std::lock_guard lock(world->mutex);
      *flags = 0;
      *active = world->primary_uses > 0;
      return CUDA_SUCCESS;
    });
  }
};

TEST_F(Contexts, are_charged_when_created_and_release_their_allocations_when_destroyed) {
  Attached slice(1, 10 << 20, context_bytes);
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), context_bytes);
  current_context = reinterpret_cast<uint64_t>(context);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 2 << 20), CUDA_SUCCESS);
  current_context = 0x1000;
  CUdeviceptr elsewhere = 0;
  ASSERT_EQ(cuMemAlloc_v2(&elsewhere, 512), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 512u);
}

TEST_F(Contexts, are_refused_if_they_exceed_the_quota_or_the_device_is_not_granted) {
  Attached slice(1, context_bytes - 1, context_bytes);
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuCtxCreate_v2(&context, 0, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuCtxCreate_v2(&context, 0, 77), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(world->contexts, 0);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Contexts, are_not_charged_if_the_driver_refuses_them) {
  Attached slice(1, 10 << 20, context_bytes);
  CUcontext context = nullptr;
  world->next_result = CUDA_ERROR_DEVICE_UNAVAILABLE;
  EXPECT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
  world->next_result = CUDA_ERROR_DEVICE_UNAVAILABLE;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Contexts, stay_charged_until_the_last_detach) {
  Attached slice(1, 10 << 20, context_bytes);
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxAttach(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDetach(context), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), context_bytes);
  EXPECT_EQ(cuCtxDetach(context), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Contexts, are_charged_from_the_first_retain_to_the_last_release) {
  Attached slice(1, 10 << 20, context_bytes);
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), context_bytes);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 512), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), context_bytes + 512);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, are_released_by_a_reset_whatever_their_use_count) {
  Attached slice(1, 10 << 20, context_bytes);
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), context_bytes);
}

TEST_F(Contexts, stay_charged_while_threads_race_to_retain_and_release_them) {
  Attached slice(1, 10 << 20, context_bytes);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        CUcontext context = nullptr;
        EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        EXPECT_GE(slice.used(), context_bytes);
        EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(slice.used(), 0u);
}

}  // namespace
}  // namespace carve::guest
