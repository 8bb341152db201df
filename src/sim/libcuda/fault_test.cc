// Injected faults, as a program sees them.
#include <chrono>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

TEST_F(DriverTest, an_xid_breaks_existing_contexts_but_not_new_ones) {
  const Signal ready, broken;
  const pid_t child = start([&] {
    const CUcontext c = begin();
    ready.give();
    broken.take();
    CUdeviceptr p = 0;
    REQUIRE(CU(cuMemAlloc_v2)(&p, 1) == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(CU(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(CU(cuCtxDestroy_v2)(c));
    begin();
    OK(CU(cuMemAlloc_v2)(&p, 1));
  });
  ready.take();
  fault("xid 31 --device 0");
  broken.give();
  EXPECT_EQ(0, finish(child));
}

TEST_F(DriverTest, a_hung_kernel_ends_when_the_fault_is_cleared_and_a_lost_device_refuses_contexts) {
  fault("hung-kernel --device 0");
  const Signal waiting;
  const pid_t child = start([&] {
    begin();
    OK(launch(spin(), nullptr, 1 * us));
    waiting.give();
    const auto from = std::chrono::steady_clock::now();
    OK(CU(cuCtxSynchronize)());
    REQUIRE(ms_since(from) > 100);
  });
  waiting.take();
  usleep(200'000);
  fault("clear");
  EXPECT_EQ(0, finish(child));
  fault("device-lost --device 1");
  EXPECT_EQ(0, run([] {
              OK(CU(cuInit)(0));
              CUcontext c = nullptr;
              REQUIRE(CU(cuCtxCreate_v2)(&c, 0, 1) == CUDA_ERROR_DEVICE_UNAVAILABLE);
              OK(CU(cuCtxCreate_v2)(&c, 0, 0));
            }));
}

}  // namespace
}  // namespace carve::sim
