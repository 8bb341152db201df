// Memory of other interfaces, for which a memfd is used here.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

int file_of(size_t bytes) {
  const int fd = memfd_create("theirs", MFD_CLOEXEC);
  REQUIRE(fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0);
  return fd;
}
CUresult try_import(int fd, size_t bytes, CUexternalMemory* out,
                    CUexternalMemoryHandleType type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = {};
  d.type = type;
  d.handle.fd = fd;
  d.size = bytes;
  return CU(cuImportExternalMemory)(out, &d);
}
CUexternalMemory import(int fd, size_t bytes) {
  CUexternalMemory m = nullptr;
  OK(try_import(fd, bytes, &m));
  return m;
}
CUdeviceptr buffer(CUexternalMemory m, size_t offset, size_t bytes) {
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC d = {};
  d.offset = offset, d.size = bytes;
  CUdeviceptr p = 0;
  OK(CU(cuExternalMemoryGetMappedBuffer)(&p, m, &d));
  return p;
}

TEST_F(DriverTest, imported_memory_takes_whole_blocks_until_it_and_its_buffers_are_freed) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              const int fd = file_of(5 * MiB), seen = dup(fd);
              const CUexternalMemory m = import(fd, 5 * MiB);
              REQUIRE(fcntl(fd, F_GETFD) < 0);  // The driver owns it now.
              REQUIRE(free_now() == before - 6 * MiB);
              const CUdeviceptr all = buffer(m, 0, 5 * MiB), part = buffer(m, MiB + 100, 1000);
              OK(CU(cuMemsetD8_v2)(part, 7, 1000));
              REQUIRE(CU(cuMemsetD8_v2)(part, 7, 1001) == CUDA_ERROR_INVALID_VALUE);
              unsigned char byte = 0;
              OK(CU(cuMemcpyDtoH_v2)(&byte, all + MiB + 100 + 999, 1));
              REQUIRE(byte == 7);
              REQUIRE(pread(seen, &byte, 1, MiB + 100) == 1 && byte == 7);
              CUDA_EXTERNAL_MEMORY_BUFFER_DESC over = {};
              over.offset = MiB, over.size = 4 * MiB + 1;
              CUdeviceptr p = 0;
              REQUIRE(CU(cuExternalMemoryGetMappedBuffer)(&p, m, &over) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuDestroyExternalMemory)(m));
              REQUIRE(CU(cuDestroyExternalMemory)(m) == CUDA_ERROR_INVALID_HANDLE);
              OK(CU(cuMemFree_v2)(part));
              REQUIRE(free_now() == before - 6 * MiB);
              OK(CU(cuMemFree_v2)(all));
              REQUIRE(free_now() == before);
              REQUIRE(CU(cuMemFree_v2)(all) == CUDA_ERROR_INVALID_VALUE);
            }));
}

TEST_F(DriverTest, imported_memory_can_be_an_array_and_is_freed_with_its_context) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              const int fd = file_of(4 * MiB), seen = dup(fd);
              const CUexternalMemory m = import(fd, 4 * MiB);
              CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC d = {};
              d.offset = 64 * KiB;
              d.arrayDesc = {256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
              d.numLevels = 1;
              CUmipmappedArray a = nullptr;
              CUarray level = nullptr;
              OK(CU(cuExternalMemoryGetMappedMipmappedArray)(&a, m, &d));
              OK(CU(cuMipmappedArrayGetLevel)(&level, a, 0));
              const std::vector<char> in(256 * 256, 'x');
              CUDA_MEMCPY2D copy = {};
              copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = in.data();
              copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = level;
              copy.WidthInBytes = copy.Height = 256;
              OK(CU(cuMemcpy2D_v2)(&copy));
              char byte = 0;
              REQUIRE(pread(seen, &byte, 1, 64 * KiB) == 1 && byte == 'x');
              OK(CU(cuMipmappedArrayDestroy)(a));
              d.offset = 4 * MiB;
              REQUIRE(CU(cuExternalMemoryGetMappedMipmappedArray)(&a, m, &d) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuDestroyExternalMemory)(m));
              REQUIRE(free_now() == before);
              CUcontext other = nullptr;
              OK(CU(cuCtxCreate_v2)(&other, 0, 0));
              buffer(import(file_of(MiB), MiB), 0, MiB);
              OK(CU(cuCtxDestroy_v2)(other));
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, memory_that_the_driver_exported_is_counted_once_when_imported) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              CUmemAllocationProp p = {};
              p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
              p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
              CUmemGenericAllocationHandle h = 0;
              int fd = -1;
              OK(CU(cuMemCreate)(&h, 6 * MiB, &p, 0));
              OK(CU(cuMemExportToShareableHandle)(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
              const CUexternalMemory m = import(fd, 6 * MiB);
              OK(CU(cuMemRelease)(h));
              REQUIRE(free_now() == before - 6 * MiB);
              OK(CU(cuDestroyExternalMemory)(m));
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, a_descriptor_that_cannot_be_imported_is_rejected_and_left_open) {
  EXPECT_EQ(
      0, run([] {
        begin();
        const size_t before = free_now();
        CUexternalMemory m = nullptr;
        const int fd = file_of(MiB);
        REQUIRE(try_import(fd, 2 * MiB, &m) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(try_import(fd, 0, &m) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(try_import(-1, MiB, &m) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(try_import(fd, MiB, &m, CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF) == CUDA_ERROR_NOT_SUPPORTED);
        const size_t large = 40'000 * MiB;
        REQUIRE(try_import(file_of(large), large, &m) == CUDA_ERROR_OUT_OF_MEMORY);
        REQUIRE(fcntl(fd, F_GETFD) >= 0 && free_now() == before);
      }));
}

}  // namespace
}  // namespace carve::sim
