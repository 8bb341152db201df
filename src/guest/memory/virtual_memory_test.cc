#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/memory/physical.h"
#include "guest/memory/sharing.h"
#include "guest/testing/driver_fake.h"
#include "wire/shm/exports.h"

namespace carve::guest {
namespace {

uint64_t next_handle = 0;
int exported_fd = -1;
CUmemGenericAllocationHandle imported_handle = 0;

class VirtualMemory : public DriverTest {
 protected:
  VirtualMemory() {
    next_handle = 100;
    on<&cuMemCreate>(
        [](CUmemGenericAllocationHandle* out, size_t size, const CUmemAllocationProp*, unsigned long long) {
          if (size == 0 || size % (2 * MiB) != 0) return CUDA_ERROR_INVALID_VALUE;
          *out = next_handle++;
          return take_result();
        });
    on<&cuMemRelease>([](CUmemGenericAllocationHandle) { return take_result(); });
    on<&cuMemMap>([](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
      return take_result();
    });
    on<&cuMemUnmap>([](CUdeviceptr, size_t) { return take_result(); });
    on<&cuMemRetainAllocationHandle>([](CUmemGenericAllocationHandle* out, void*) {
      *out = next_handle - 1;
      return CUDA_SUCCESS;
    });
    on<&cuMemExportToShareableHandle>(
        [](void* out, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long) {
          *static_cast<int*>(out) = exported_fd = memfd_create("export", MFD_CLOEXEC);
          return CUDA_SUCCESS;
        });
    on<&cuMemImportFromShareableHandle>(
        [](CUmemGenericAllocationHandle* out, void*, CUmemAllocationHandleType) {
          *out = imported_handle != 0 ? imported_handle : next_handle++;
          return CUDA_SUCCESS;
        });
    on<&cuMulticastCreate>([](CUmemGenericAllocationHandle* out, const CUmulticastObjectProp*) {
      *out = next_handle++;
      return CUDA_SUCCESS;
    });
    on<&cuMulticastBindMem>([](CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t,
                               size_t, unsigned long long) { return CUDA_SUCCESS; });
    on<&cuMulticastBindAddr>([](CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t,
                                unsigned long long) { return CUDA_SUCCESS; });
    on<&cuMulticastBindMem_v2>([](CUmemGenericAllocationHandle, CUdevice, size_t,
                                  CUmemGenericAllocationHandle, size_t, size_t,
                                  unsigned long long) { return CUDA_SUCCESS; });
    on<&cuMulticastBindAddr_v2>([](CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr, size_t,
                                   unsigned long long) { return CUDA_SUCCESS; });
    on<&cuMulticastUnbind>(
        [](CUmemGenericAllocationHandle, CUdevice, size_t, size_t) { return CUDA_SUCCESS; });
    on<&cuMemMapArrayAsync>([](CUarrayMapInfo*, unsigned, CUstream) { return CUDA_SUCCESS; });
    on<&cuArrayDestroy>([](CUarray) { return CUDA_SUCCESS; });
    imported_handle = 0;
  }

  CUmemGenericAllocationHandle create(uint64_t size, int device = 0, CUresult expected = CUDA_SUCCESS,
                                      CUmemLocationType where = CU_MEM_LOCATION_TYPE_DEVICE) {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {where, device};
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, size, &prop, 0), expected);
    return handle;
  }
  // Returns the bytes in use after a call that settles exported memory.
  uint64_t settled(const Attached& slice) {
    EXPECT_EQ(cuMemGetInfo_v2(nullptr, nullptr), CUDA_SUCCESS);
    return slice.used();
  }
  CUmemGenericAllocationHandle exported(int* fd) {
    const auto handle = create(2 * MiB);
    EXPECT_EQ(cuMemExportToShareableHandle(fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    return handle;
  }
  void* as_handle(int fd) { return reinterpret_cast<void*>(static_cast<intptr_t>(fd)); }
};

TEST_F(VirtualMemory, is_charged_to_the_device_of_its_location_without_a_context) {
  Attached slice(2, 10 * MiB);
  on<&cuCtxGetDevice>([](CUdevice*) { return CUDA_ERROR_INVALID_CONTEXT; });
  const auto a = create(4 * MiB, 1);
  EXPECT_EQ(slice.used(0), 0u);
  EXPECT_EQ(slice.used(1), 4 * MiB);
  create(8 * MiB, 1, CUDA_ERROR_OUT_OF_MEMORY);
  create(3 * MiB, 1, CUDA_ERROR_INVALID_VALUE);
  create(4 * MiB, 7, CUDA_ERROR_OUT_OF_MEMORY);
  create(40 * MiB, 0, CUDA_SUCCESS, CU_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(0) + slice.used(1), 0u);
}

TEST_F(VirtualMemory, is_charged_to_the_device_of_its_locality_domain) {
  Attached slice(2, 10 * MiB);
  constexpr auto domain = CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN;
  constexpr int second_of_device_1 = 1 | 1 << 8;  // The low byte is the device, the next byte the domain.
  const auto a = create(4 * MiB, second_of_device_1, CUDA_SUCCESS, domain);
  EXPECT_EQ(slice.used(0), 0u);
  EXPECT_EQ(slice.used(1), 4 * MiB);
  create(8 * MiB, second_of_device_1, CUDA_ERROR_OUT_OF_MEMORY, domain);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(1), 0u);
}

TEST_F(VirtualMemory, stays_charged_while_a_mapping_exists) {
  Attached slice;
  const auto a = create(4 * MiB);
  ASSERT_EQ(cuMemMap(0x10000000, 2 * MiB, 0, a, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(0x10000000 + 2 * MiB, 2 * MiB, 2 * MiB, a, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 4 * MiB);
  EXPECT_EQ(cuMemUnmap(0x10000000, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 4 * MiB);
  EXPECT_EQ(cuMemUnmap(0x10000000 + 2 * MiB, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(VirtualMemory, is_released_by_one_unmap_of_several_mappings) {
  Attached slice;
  const auto a = create(4 * MiB), b = create(2 * MiB);
  ASSERT_EQ(cuMemMap(0x10000000, 4 * MiB, 0, a, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(0x10000000 + 4 * MiB, 2 * MiB, 0, b, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(b), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 6 * MiB);
  EXPECT_EQ(cuMemUnmap(0x10000000, 6 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(VirtualMemory, stays_charged_while_a_retained_handle_exists) {
  Attached slice;
  const auto a = create(2 * MiB);
  ASSERT_EQ(cuMemMap(0x10000000, 2 * MiB, 0, a, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle again = 0;
  ASSERT_EQ(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(0x10000000)), CUDA_SUCCESS);
  EXPECT_EQ(again, a);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(0x10000000 + 512)), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(0x10000000, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * MiB) << "the handle that was retained through the mapping holds the memory";
  EXPECT_EQ(cuMemRelease(again), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(VirtualMemory, is_distinguished_from_earlier_memory_with_the_same_handle) {
  Attached slice;
  const auto a = create(2 * MiB);
  ASSERT_EQ(cuMemMap(0x10000000, 2 * MiB, 0, a, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  next_handle = a;
  const auto b = create(4 * MiB);
  ASSERT_EQ(b, a);
  EXPECT_EQ(slice.used(), 6 * MiB);
  EXPECT_EQ(cuMemRelease(b), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * MiB);
}

TEST_F(VirtualMemory, is_charged_as_before_if_the_driver_rejects_a_call) {
  Attached slice;
  world->next_result = CUDA_ERROR_NOT_SUPPORTED;
  create(2 * MiB, 0, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(slice.used(), 0u);
  const auto a = create(2 * MiB);
  world->next_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(cuMemRelease(a), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(slice.used(), 2 * MiB);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(VirtualMemory, is_charged_once_if_its_exporter_imports_it) {
  Attached slice;
  const auto a = create(2 * MiB);
  int fd = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&fd, a, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle b = 0;
  ASSERT_EQ(cuMemImportFromShareableHandle(&b, as_handle(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  ASSERT_NE(a, b);
  EXPECT_EQ(slice.used(), 2 * MiB) << "charged once";
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * MiB);
  close(fd);
  EXPECT_EQ(cuMemRelease(b), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(VirtualMemory, stays_charged_while_an_exported_descriptor_is_open) {
  Attached slice(1, 4 * MiB);
  int first = -1, second = -1;
  const auto a = exported(&first), b = exported(&second);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(b), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 4 * MiB);
  create(2 * MiB, 0, CUDA_ERROR_OUT_OF_MEMORY);
  close(first);
  const auto c = create(2 * MiB);
  EXPECT_EQ(slice.used(), 4 * MiB);
  close(second);
  EXPECT_EQ(cuMemRelease(c), CUDA_SUCCESS);
  EXPECT_EQ(settled(slice), 0u);
}

TEST_F(VirtualMemory, is_not_kept_charged_by_a_reused_descriptor_number) {
  Attached slice;
  int first = -1, second = -1;
  EXPECT_EQ(cuMemRelease(exported(&first)), CUDA_SUCCESS);
  close(first);
  const auto b = exported(&second);
  ASSERT_EQ(second, first);
  EXPECT_EQ(settled(slice), 2 * MiB);
  close(second);
  const int other = memfd_create("another object", MFD_CLOEXEC);
  ASSERT_EQ(other, second);
  EXPECT_EQ(cuMemRelease(b), CUDA_SUCCESS);
  EXPECT_EQ(settled(slice), 0u);
  close(other);
}

TEST_F(VirtualMemory, is_released_as_each_of_many_exported_descriptors_is_closed) {
  Attached slice(1, 200 * MiB);
  int open[100];
  for (int& fd : open) EXPECT_EQ(cuMemRelease(exported(&fd)), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 200 * MiB);
  for (int round = 0; round < 10; ++round) EXPECT_EQ(settled(slice), 200 * MiB);
  for (int i = 0; i < 100; i += 2) close(open[i]);
  EXPECT_EQ(settled(slice), 100 * MiB);
  for (int i = 1; i < 100; i += 2) close(open[i]);
  EXPECT_EQ(settled(slice), 0u);
}

// The other process is represented by its bit in the block.
TEST_F(VirtualMemory, stays_charged_while_another_process_holds_it) {
  Attached slice(1, 4 * MiB);
  int fd = -1;
  const auto a = exported(&fd);
  shm::Charges& charges = slice.report->charges;
  const unsigned block = shm::find_block(charges, name_of_descriptor(fd));
  ASSERT_NE(block, no_block);
  shm::add_holder(charges.block[block], 9);
  close(fd);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * MiB);
  EXPECT_EQ(settled(slice), 2 * MiB);
  create(4 * MiB, 0, CUDA_ERROR_OUT_OF_MEMORY);
  shm::remove_holder(charges.block[block], 9);
  create(4 * MiB);
  EXPECT_EQ(slice.used(), 4 * MiB);
}

TEST_F(VirtualMemory, stays_charged_after_its_exporter_dies_while_a_descriptor_is_open) {
  Attached slice(1, 4 * MiB);
  int fd = -1;
  exported(&fd);
  create(2 * MiB);
  shm::Charges& charges = slice.report->charges;
  ASSERT_TRUE(shm::reclaim(charges, slice.process->slot));
  ASSERT_TRUE(shm::leave_blocks(charges, slice.process->slot));
  EXPECT_EQ(settled(slice), 2 * MiB) << "another process may have the descriptor";
  close(fd);
  EXPECT_EQ(settled(slice), 0u);
}

TEST_F(VirtualMemory, is_identified_by_the_descriptors_name_if_all_have_one_inode) {
  Attached slice;
  on<&cuMemExportToShareableHandle>(
      [](void* out, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long) {
        *static_cast<int*>(out) = open("/dev/null", O_RDWR | O_CLOEXEC);
        return CUDA_SUCCESS;
      });
  int fd = -1;
  const auto a = exported(&fd);
  CUmemGenericAllocationHandle again = 0;
  ASSERT_EQ(cuMemImportFromShareableHandle(&again, as_handle(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  close(fd);
  EXPECT_EQ(settled(slice), 2 * MiB) << "the imported handle holds the memory";
  EXPECT_EQ(cuMemRelease(again), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
  const int theirs = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(name_descriptor(theirs, new_name()));
  EXPECT_EQ(
      cuMemImportFromShareableHandle(&again, as_handle(theirs), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      CUDA_ERROR_NOT_PERMITTED)
      << "another slice exported this descriptor";
  close(theirs);
}

TEST_F(VirtualMemory, can_be_imported_only_from_processes_of_the_same_slice) {
  Attached slice;
  const int theirs = memfd_create("theirs", MFD_CLOEXEC);
  CUmemGenericAllocationHandle handle = 0;
  const auto import = [&] {
    return cuMemImportFromShareableHandle(&handle, as_handle(theirs),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  };
  EXPECT_EQ(import(), CUDA_ERROR_NOT_PERMITTED);
  shm::publish(slice.report->exports, *slice.control, 9, identity_of_descriptor(theirs));
  EXPECT_EQ(import(), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u) << "the exporter is charged";
  const int device = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(
      cuMemImportFromShareableHandle(&handle, as_handle(device), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      CUDA_SUCCESS)
      << "descriptors of one device node cannot be distinguished";
  for (int fd : {theirs, device}) close(fd);
}

TEST_F(VirtualMemory, stays_charged_while_bound_to_a_multicast_object) {
  Attached slice(2);
  CUmemGenericAllocationHandle object = 0;
  CUmulticastObjectProp prop = {};
  ASSERT_EQ(cuMulticastCreate(&object, &prop), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
  const auto a = create(2 * MiB), b = create(2 * MiB, 1);
  ASSERT_EQ(cuMulticastBindMem(object, 0, a, 0, 2 * MiB, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(0x10000000, 2 * MiB, 0, b, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMulticastBindAddr(object, 0, 0x10000000, 2 * MiB, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(b), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(0x10000000, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(0), 2 * MiB);
  EXPECT_EQ(slice.used(1), 2 * MiB);
  EXPECT_EQ(cuMulticastUnbind(object, 0, 0, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(0), 0u);
  EXPECT_EQ(slice.used(1), 2 * MiB);
  EXPECT_EQ(cuMemRelease(object), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(1), 0u);
}

TEST_F(VirtualMemory, stays_charged_while_bound_by_the_calls_of_cuda_13_1) {
  Attached slice(2);
  CUmemGenericAllocationHandle object = 0;
  CUmulticastObjectProp prop = {};
  ASSERT_EQ(cuMulticastCreate(&object, &prop), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
  const auto a = create(2 * MiB), b = create(2 * MiB, 1);
  ASSERT_EQ(cuMulticastBindMem_v2(object, 0, 0, a, 0, 2 * MiB, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(0x10000000, 2 * MiB, 0, b, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMulticastBindAddr_v2(object, 1, 0, 0x10000000, 2 * MiB, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(b), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(0x10000000, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(0), 2 * MiB);
  EXPECT_EQ(slice.used(1), 2 * MiB);
  EXPECT_EQ(cuMulticastUnbind(object, 0, 0, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(0), 0u);
  EXPECT_EQ(slice.used(1), 2 * MiB);
  EXPECT_EQ(cuMemRelease(object), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(1), 0u);
}

// Other processes may hold the object, and therefore the memory.
TEST_F(VirtualMemory, stays_charged_while_bound_to_an_exported_multicast_object) {
  Attached slice;
  CUmemGenericAllocationHandle object = 0;
  CUmulticastObjectProp prop = {};
  prop.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ASSERT_EQ(cuMulticastCreate(&object, &prop), CUDA_SUCCESS);
  int fd = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&fd, object, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  const auto a = create(4 * MiB);
  ASSERT_EQ(cuMulticastBindMem(object, 0, a, 0, 4 * MiB, 0), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 4 * MiB);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(object), CUDA_SUCCESS);
  EXPECT_EQ(settled(slice), 4 * MiB) << "the object's descriptor is open";
  ASSERT_TRUE(shm::reclaim(slice.report->charges, slice.process->slot));
  EXPECT_EQ(settled(slice), 4 * MiB);
  close(fd);
  settled(slice);
  EXPECT_EQ(settled(slice), 0u);
}

TEST_F(VirtualMemory, stays_charged_while_mapped_into_an_array) {
  Attached slice;
  const auto a = create(2 * MiB), b = create(2 * MiB);
  CUarrayMapInfo info[2] = {};
  for (int i = 0; i < 2; ++i) {
    info[i].resourceType = CU_RESOURCE_TYPE_ARRAY;
    info[i].resource.array = reinterpret_cast<CUarray>(0x7100);
    info[i].subresource.sparseLevel.offsetX = static_cast<unsigned>(i) * 64;
    info[i].memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    info[i].memHandle.memHandle = i == 0 ? a : b;
  }
  ASSERT_EQ(cuMemMapArrayAsync(info, 2, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(b), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 4 * MiB);
  info[0].memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
  ASSERT_EQ(cuMemMapArrayAsync(info, 1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * MiB);
  EXPECT_EQ(cuArrayDestroy(reinterpret_cast<CUarray>(0x7100)), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

using Sharing = DriverTest;

TEST_F(Sharing, opens_an_ipc_handle_only_in_the_slice_that_made_it) {
  Attached slice;
  on<&cuIpcGetMemHandle>([](CUipcMemHandle* h, CUdeviceptr p) {
    memset(h, 0, sizeof *h);
    memcpy(h, &p, sizeof p);
    return CUDA_SUCCESS;
  });
  on<&cuIpcOpenMemHandle_v2>([](CUdeviceptr* p, CUipcMemHandle, unsigned) {
    *p = 1;
    return CUDA_SUCCESS;
  });
  CUipcMemHandle this_thread = {}, theirs = {};
  CUdeviceptr p = 0;
  ASSERT_EQ(cuIpcGetMemHandle(&this_thread, 0x7000), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&p, this_thread, 1), CUDA_SUCCESS);
  memset(&theirs, 3, sizeof theirs);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&p, theirs, 1), CUDA_ERROR_MAP_FAILED);
}

TEST_F(Sharing, keeps_memory_charged_until_every_process_has_closed_its_ipc_handle) {
  Attached slice;
  on<&cuIpcGetMemHandle>([](CUipcMemHandle* h, CUdeviceptr p) {
    memset(h, 0, sizeof *h);
    memcpy(h, &p, sizeof p);
    return CUDA_SUCCESS;
  });
  on<&cuIpcOpenMemHandle_v2>([](CUdeviceptr* p, CUipcMemHandle, unsigned) {
    *p = 0x9000;
    return CUDA_SUCCESS;
  });
  on<&cuIpcCloseMemHandle>([](CUdeviceptr) { return CUDA_SUCCESS; });
  shm::Charges& charges = slice.report->charges;
  CUdeviceptr pointer = 0, opened = 0;
  CUipcMemHandle handle = {};
  ASSERT_EQ(cuMemAlloc_v2(&pointer, 2 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetMemHandle(&handle, pointer), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetMemHandle(&handle, pointer), CUDA_SUCCESS) << "the handle is exported a second time";
  EXPECT_EQ(slice.used(), 2 * MiB);
  shm::add_holder(charges.block[0], 9);
  EXPECT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * MiB) << "the process in slot 9 holds the memory";
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cuIpcOpenMemHandle_v2(&opened, handle, 1), CUDA_SUCCESS);
  EXPECT_TRUE(shm::leave_blocks(charges, 9));
  EXPECT_EQ(slice.used(), 2 * MiB);
  EXPECT_EQ(cuIpcCloseMemHandle(opened), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * MiB) << "opened twice";
  EXPECT_EQ(cuIpcCloseMemHandle(opened), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Sharing, charges_external_memory_to_the_importer) {
  Attached slice;
  on<&cuImportExternalMemory>([](CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*) {
    *out = reinterpret_cast<CUexternalMemory>(0x8800);
    return CUDA_SUCCESS;
  });
  on<&cuDestroyExternalMemory>([](CUexternalMemory) { return CUDA_SUCCESS; });
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {};
  description.size = 3 * MiB;
  CUexternalMemory memory = nullptr;
  ASSERT_EQ(cuImportExternalMemory(&memory, &description), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 4 * MiB);
  EXPECT_EQ(cuDestroyExternalMemory(memory), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
  description.size = 30 * MiB;
  EXPECT_EQ(cuImportExternalMemory(&memory, &description), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace carve::guest
