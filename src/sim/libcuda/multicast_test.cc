// Multicast objects on a set of Hopper devices: which memory a binding keeps allocated, and which calls are
// rejected.
#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

CUmulticastObjectProp of(unsigned devices, size_t bytes) {
  CUmulticastObjectProp p = {};
  p.numDevices = devices;
  p.size = bytes;
  return p;
}
CUmemGenericAllocationHandle memory(int device, size_t bytes) {
  CUmemAllocationProp p = {};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemGenericAllocationHandle h = 0;
  OK(CU(cuMemCreate)(&h, bytes, &p, 0));
  return h;
}

TEST_F(DriverTest, memory_bound_to_a_multicast_object_stays_allocated_until_it_is_unbound) {
  create("h100-80x2");
  EXPECT_EQ(
      0, run([] {
        begin();
        int can = 0;
        OK(CU(cuDeviceGetAttribute)(&can, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
        REQUIRE(can == 1);
        const CUmulticastObjectProp p = of(2, 32 * MiB);
        size_t step = 0;
        OK(CU(cuMulticastGetGranularity)(&step, &p, CU_MULTICAST_GRANULARITY_MINIMUM));
        REQUIRE(step == 2 * MiB);
        const size_t before = free_now();
        CUmemGenericAllocationHandle object = 0;
        OK(CU(cuMulticastCreate)(&object, &p));
        REQUIRE(free_now() == before);
        const CUmemGenericAllocationHandle mine = memory(0, 32 * MiB), theirs = memory(1, 32 * MiB);
        const auto bind = CU(cuMulticastBindMem);
        OK(CU(cuMulticastAddDevice)(object, 0));
        REQUIRE(bind(object, 0, mine, 0, 32 * MiB, 0) == CUDA_ERROR_INVALID_VALUE);  // A device is missing.
        REQUIRE(CU(cuMulticastAddDevice)(object, 0) == CUDA_ERROR_INVALID_VALUE);
        OK(CU(cuMulticastAddDevice)(object, 1));
        OK(bind(object, 0, mine, 0, 16 * MiB, 0));
        OK(bind(object, 0, theirs, 0, 32 * MiB, 0));
        REQUIRE(bind(object, 8 * MiB, mine, 0, 16 * MiB, 0) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(bind(object, 16 * MiB, mine, 0, 32 * MiB, 0) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(bind(object, 16 * MiB, object, 0, 2 * MiB, 0) == CUDA_ERROR_INVALID_VALUE);
        OK(CU(cuMemRelease)(mine));
        REQUIRE(free_now() == before - 32 * MiB);

        CUdeviceptr at = 0;
        OK(CU(cuMemAddressReserve)(&at, 32 * MiB, 0, 0, 0));
        OK(CU(cuMemMap)(at, 32 * MiB, 0, object, 0));
        CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        OK(CU(cuMemSetAccess)(at, 32 * MiB, &access, 1));
        REQUIRE(CU(cuMemsetD8_v2)(at, 1, MiB) == CUDA_ERROR_INVALID_VALUE);
        OK(CU(cuMemUnmap)(at, 32 * MiB));

        REQUIRE(CU(cuMulticastUnbind)(object, 0, 0, 8 * MiB) == CUDA_ERROR_INVALID_VALUE);
        OK(CU(cuMulticastUnbind)(object, 0, 0, 16 * MiB));
        REQUIRE(free_now() == before);
        // Binds by address. Destroying the object releases the memory.
        const CUmemGenericAllocationHandle again = memory(0, 8 * MiB);
        OK(CU(cuMemMap)(at, 8 * MiB, 0, again, 0));
        OK(CU(cuMulticastBindAddr)(object, 4 * MiB, at, 8 * MiB, 0));
        OK(CU(cuMemUnmap)(at, 8 * MiB));
        OK(CU(cuMemRelease)(again));
        REQUIRE(free_now() == before - 8 * MiB);
        OK(CU(cuMemRelease)(object));
        REQUIRE(free_now() == before);
      }));
}

TEST_F(DriverTest, devices_without_multicast_return_not_supported) {
  EXPECT_EQ(0, run([] {
              begin();
              int can = 1;
              OK(CU(cuDeviceGetAttribute)(&can, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
              REQUIRE(can == 0);
              CUmulticastObjectProp p = of(2, 32 * MiB);
              CUmemGenericAllocationHandle object = 0;
              REQUIRE(CU(cuMulticastCreate)(&object, &p) == CUDA_ERROR_NOT_SUPPORTED);
              p.size =
                  MiB;  // As in NVIDIA's driver 550, which reads no argument if no device supports multicast.
              REQUIRE(CU(cuMulticastCreate)(&object, &p) == CUDA_ERROR_NOT_SUPPORTED);
              REQUIRE(CU(cuMulticastAddDevice)(memory(0, 2 * MiB), 0) == CUDA_ERROR_NOT_SUPPORTED);
            }));
  create("h100-80x2");
  EXPECT_EQ(0, run([] {
              begin();
              CUmulticastObjectProp p = of(2, MiB);
              CUmemGenericAllocationHandle object = 0;
              REQUIRE(CU(cuMulticastCreate)(&object, &p) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuMulticastAddDevice)(memory(0, 2 * MiB), 0) == CUDA_ERROR_INVALID_VALUE);
            }));
}

}  // namespace
}  // namespace carve::sim
