// Arrays through the real library: their memory, their copies, and memory that is mapped later.
#include <algorithm>
#include <cstring>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

constexpr auto byte_format = CU_AD_FORMAT_UNSIGNED_INT8;

CUarray make(size_t w, size_t h, size_t d, unsigned flags = 0, CUarray_format f = byte_format,
             unsigned channels = 1) {
  const CUDA_ARRAY3D_DESCRIPTOR as = {w, h, d, f, channels, flags};
  CUarray a = nullptr;
  OK(CU(cuArray3DCreate_v2)(&a, &as));
  return a;
}
std::vector<char> pattern(size_t n) {
  std::vector<char> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<char>(i * 7 + i / 251);
  return v;
}
CUDA_MEMCPY3D whole(size_t w, size_t h, size_t d) {
  CUDA_MEMCPY3D m = {};
  m.WidthInBytes = w, m.Height = h, m.Depth = d;
  return m;
}
void write(CUarray a, const std::vector<char>& from, size_t w, size_t h, size_t d = 1) {
  CUDA_MEMCPY3D m = whole(w, h, d);
  m.srcMemoryType = CU_MEMORYTYPE_HOST, m.srcHost = from.data();
  m.dstMemoryType = CU_MEMORYTYPE_ARRAY, m.dstArray = a;
  OK(CU(cuMemcpy3D_v2)(&m));
}
std::vector<char> read(CUarray a, size_t w, size_t h, size_t d = 1) {
  std::vector<char> out(w * h * d);
  CUDA_MEMCPY3D m = whole(w, h, d);
  m.srcMemoryType = CU_MEMORYTYPE_ARRAY, m.srcArray = a;
  m.dstMemoryType = CU_MEMORYTYPE_HOST, m.dstHost = out.data();
  OK(CU(cuMemcpy3D_v2)(&m));
  return out;
}
CUmemGenericAllocationHandle tile_pool(size_t bytes) {
  CUmemAllocationProp p = {};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  CUmemGenericAllocationHandle h = 0;
  OK(CU(cuMemCreate)(&h, bytes, &p, 0));
  return h;
}
CUarrayMapInfo mapping(CUarray a, CUmemGenericAllocationHandle h, size_t offset = 0) {
  CUarrayMapInfo info = {};
  info.resourceType = CU_RESOURCE_TYPE_ARRAY;
  info.resource.array = a;
  info.memOperationType = h ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
  info.memHandle.memHandle = h;
  info.offset = offset;
  info.deviceBitMask = 1;
  return info;
}
CUarrayMapInfo tiles(CUarray a, CUmemGenericAllocationHandle h, unsigned x, unsigned y, unsigned w,
                     unsigned height, size_t offset = 0) {
  CUarrayMapInfo info = mapping(a, h, offset);
  info.subresource.sparseLevel.offsetX = x;
  info.subresource.sparseLevel.offsetY = y;
  info.subresource.sparseLevel.extentWidth = w;
  info.subresource.sparseLevel.extentHeight = height;
  info.subresource.sparseLevel.extentDepth = 1;
  return info;
}

TEST_F(DriverTest, small_arrays_share_blocks_and_large_arrays_take_whole_blocks) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              std::vector<CUarray> all;
              for (int i = 0; i < 32; ++i) all.push_back(make(100, 100, 0));
              REQUIRE(free_now() == before - 2 * MiB);
              all.push_back(make(100, 100, 0));
              REQUIRE(free_now() == before - 4 * MiB);
              all.push_back(make(1024, 1025, 0));
              REQUIRE(free_now() == before - 6 * MiB);
              CUmipmappedArray m = nullptr;
              const CUDA_ARRAY3D_DESCRIPTOR d = {2048, 2048, 0, byte_format, 1, 0};
              OK(CU(cuMipmappedArrayCreate)(&m, &d, 3));
              REQUIRE(free_now() == before - 12 * MiB);
              OK(CU(cuMipmappedArrayDestroy)(m));
              for (const CUarray a : all) OK(CU(cuArrayDestroy)(a));
              REQUIRE(free_now() == before);
              REQUIRE(CU(cuArrayDestroy)(all[0]) == CUDA_ERROR_INVALID_HANDLE);
              // Objects that are left in a context are destroyed with it.
              CUcontext other = nullptr;
              OK(CU(cuCtxCreate_v2)(&other, 0, 0));
              const CUarray left = make(4096, 4096, 0);
              OK(CU(cuCtxDestroy_v2)(other));
              REQUIRE(CU(cuArrayDestroy)(left) == CUDA_ERROR_INVALID_HANDLE);
              REQUIRE(free_now() == before);
              CUDA_ARRAY3D_DESCRIPTOR huge = {16384, 16384, 16384, byte_format, 4, 0};
              CUarray a = nullptr;
              REQUIRE(CU(cuArray3DCreate_v2)(&a, &huge) == CUDA_ERROR_OUT_OF_MEMORY);
            }));
}

TEST_F(DriverTest, copies_move_a_box_into_an_array_and_out_of_it) {
  EXPECT_EQ(0, run([] {
              begin();
              const auto in = pattern(300 * 40 * 3);
              const CUarray a = make(300, 40, 3), b = make(75, 40, 3, CUDA_ARRAY3D_LAYERED, byte_format, 4);
              write(a, in, 300, 40, 3);
              REQUIRE(read(a, 300, 40, 3) == in);
              // From array to array. The texels of the second array have another size.
              CUDA_MEMCPY3D m = whole(300, 40, 3);
              m.srcMemoryType = m.dstMemoryType = CU_MEMORYTYPE_ARRAY;
              m.srcArray = a, m.dstArray = b;
              OK(CU(cuMemcpy3DAsync_v2)(&m, nullptr));
              REQUIRE(read(b, 300, 40, 3) == in);
              // A row in the middle, through device memory.
              CUdeviceptr p = 0;
              OK(CU(cuMemAlloc_v2)(&p, 1024));
              CUDA_MEMCPY3D row = whole(100, 1, 1);
              row.srcMemoryType = CU_MEMORYTYPE_ARRAY, row.srcArray = a;
              row.srcXInBytes = 50, row.srcY = 7, row.srcZ = 2;
              row.dstMemoryType = CU_MEMORYTYPE_DEVICE, row.dstDevice = p;
              OK(CU(cuMemcpy3D_v2)(&row));
              char out[100];
              OK(CU(cuMemcpyDtoH_v2)(out, p, 100));
              REQUIRE(std::memcmp(out, &in[(2 * 40 + 7) * 300 + 50], 100) == 0);
              CUDA_MEMCPY2D flat = {};
              flat.srcMemoryType = CU_MEMORYTYPE_DEVICE, flat.srcDevice = p, flat.srcPitch = 25;
              flat.dstMemoryType = CU_MEMORYTYPE_ARRAY, flat.dstArray = a, flat.dstY = 36;
              flat.WidthInBytes = 25, flat.Height = 4;
              OK(CU(cuMemcpy2D_v2)(&flat));
              REQUIRE(read(a, 300, 40, 3)[36 * 300 + 300 + 3] == out[28]);
              for (const auto& wrong : {&CUDA_MEMCPY2D::dstXInBytes, &CUDA_MEMCPY2D::dstY}) {
                CUDA_MEMCPY2D over = flat;
                over.*wrong = wrong == &CUDA_MEMCPY2D::dstY ? 37 : 276;
                REQUIRE(CU(cuMemcpy2D_v2)(&over) == CUDA_ERROR_INVALID_VALUE);
              }
              row.srcArray = reinterpret_cast<CUarray>(&row);
              REQUIRE(CU(cuMemcpy3D_v2)(&row) == CUDA_ERROR_INVALID_HANDLE);
            }));
}

TEST_F(DriverTest, lines_can_be_copied_to_and_from_one_dimensional_arrays) {
  EXPECT_EQ(0, run([] {
              begin();
              const auto in = pattern(4000);
              std::vector<char> out(4000);
              const CUarray a = make(1000, 0, 0, 0, CU_AD_FORMAT_FLOAT),
                            b = make(1000, 0, 0, 0, CU_AD_FORMAT_FLOAT);
              CUdeviceptr p = 0;
              OK(CU(cuMemAlloc_v2)(&p, 4000));
              OK(CU(cuMemcpyHtoA_v2)(a, 0, in.data(), 4000));
              OK(CU(cuMemcpyAtoD_v2)(p, a, 400, 3600));
              OK(CU(cuMemcpyDtoA_v2)(b, 400, p, 3600));
              OK(CU(cuMemcpyAtoA_v2)(b, 0, a, 0, 400));
              OK(CU(cuMemcpyAtoHAsync_v2)(out.data(), b, 0, 4000, nullptr));
              OK(CU(cuCtxSynchronize)());
              REQUIRE(in == out);
              OK(CU(cuMemcpyHtoAAsync_v2_ptsz)(a, 3996, in.data(), 4, nullptr));
              OK(CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
              OK(CU(cuMemcpyAtoH_v2_ptds)(out.data(), a, 3996, 4));
              REQUIRE(std::memcmp(out.data(), in.data(), 4) == 0);
              REQUIRE(CU(cuMemcpyHtoA_v2)(a, 3998, in.data(), 4) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuMemcpyHtoA_v2)(make(64, 64, 0), 0, in.data(), 4) == CUDA_ERROR_INVALID_VALUE);
            }));
}

TEST_F(DriverTest, levels_and_planes_are_arrays_that_are_destroyed_with_their_parent) {
  EXPECT_EQ(0, run([] {
              begin();
              CUmipmappedArray m = nullptr;
              const CUDA_ARRAY3D_DESCRIPTOR d = {64, 32, 0, byte_format, 1, 0};
              OK(CU(cuMipmappedArrayCreate)(&m, &d, 99));
              CUarray level[7], none = nullptr;
              for (unsigned i = 0; i < 7; ++i) OK(CU(cuMipmappedArrayGetLevel)(&level[i], m, i));
              REQUIRE(CU(cuMipmappedArrayGetLevel)(&none, m, 7) == CUDA_ERROR_INVALID_VALUE);
              CUDA_ARRAY3D_DESCRIPTOR told = {};
              OK(CU(cuArray3DGetDescriptor_v2)(&told, level[2]));
              REQUIRE(told.Width == 16 && told.Height == 8 && told.Format == byte_format);
              const auto in = pattern(64 * 32);
              write(level[0], in, 64, 32);
              write(level[1], pattern(32 * 16), 32, 16);
              REQUIRE(read(level[0], 64, 32) == in && read(level[1], 32, 16) == pattern(32 * 16));
              REQUIRE(CU(cuArrayDestroy)(level[0]) == CUDA_ERROR_INVALID_HANDLE);
              OK(CU(cuMipmappedArrayDestroy)(m));
              REQUIRE(CU(cuArray3DGetDescriptor_v2)(&told, level[2]) == CUDA_ERROR_INVALID_HANDLE);

              const CUarray video = make(64, 32, 0, 0, CU_AD_FORMAT_NV12, 3);
              CUarray y = nullptr, uv = nullptr;
              OK(CU(cuArrayGetPlane)(&y, video, 0));
              OK(CU(cuArrayGetPlane)(&uv, video, 1));
              REQUIRE(CU(cuArrayGetPlane)(&none, video, 2) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuArrayGetPlane)(&none, y, 0) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuArray3DGetDescriptor_v2)(&told, uv));
              REQUIRE(told.Width == 32 && told.Height == 16 && told.NumChannels == 2);
              write(y, in, 64, 32);
              write(uv, pattern(64 * 16), 64, 16);
              REQUIRE(read(y, 64, 32) == in);
              OK(CU(cuArrayDestroy)(video));
            }));
}

TEST_F(DriverTest, a_deferred_array_takes_no_memory_until_memory_is_mapped_into_it) {
  EXPECT_EQ(
      0, run([] {
        begin();
        CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
        REQUIRE(CU(cuArrayGetMemoryRequirements)(&needs, make(64, 64, 0), 0) == CUDA_ERROR_INVALID_VALUE);
        const size_t before = free_now();
        const CUarray a = make(1000, 1000, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
        REQUIRE(free_now() == before);
        OK(CU(cuArrayGetMemoryRequirements)(&needs, a, 0));
        REQUIRE(needs.size == 16 * 64 * KiB && needs.alignment == 64 * KiB);
        CUDA_MEMCPY3D m = whole(10, 10, 1);
        char bytes[100] = {};
        m.srcMemoryType = CU_MEMORYTYPE_HOST, m.srcHost = bytes;
        m.dstMemoryType = CU_MEMORYTYPE_ARRAY, m.dstArray = a;
        REQUIRE(CU(cuMemcpy3D_v2)(&m) == CUDA_ERROR_INVALID_VALUE);
        const CUmemGenericAllocationHandle h = tile_pool(4 * MiB);
        CUarrayMapInfo info = mapping(a, h, 64 * KiB);
        OK(CU(cuMemMapArrayAsync)(&info, 1, nullptr));
        const auto in = pattern(1000 * 1000);
        write(a, in, 1000, 1000);
        REQUIRE(read(a, 1000, 1000) == in);
        OK(CU(cuMemRelease)(h));
        REQUIRE(free_now() == before - 4 * MiB);
        info = mapping(a, 0);
        OK(CU(cuMemMapArrayAsync)(&info, 1, nullptr));
        REQUIRE(free_now() == before);
        REQUIRE(CU(cuMemcpy3D_v2)(&m) == CUDA_ERROR_INVALID_VALUE);
        OK(CU(cuArrayDestroy)(a));
      }));
}

TEST_F(DriverTest, tiles_of_a_sparse_array_are_mapped_or_read_as_zero) {
  EXPECT_EQ(
      0, run([] {
        begin();
        const size_t before = free_now();
        const CUarray a = make(1000, 600, 0, CUDA_ARRAY3D_SPARSE);
        CUDA_ARRAY_SPARSE_PROPERTIES p = {};
        OK(CU(cuArrayGetSparseProperties)(&p, a));
        REQUIRE(p.tileExtent.width == 256 && p.tileExtent.height == 256 && p.tileExtent.depth == 1);
        REQUIRE(free_now() == before);
        const CUmemGenericAllocationHandle h = tile_pool(2 * MiB);
        // Two tiles in the first row, the last tile of the last row, and an invalid one.
        CUarrayMapInfo list[] = {tiles(a, h, 0, 0, 512, 256), tiles(a, h, 768, 512, 232, 88, 128 * KiB)};
        OK(CU(cuMemMapArrayAsync)(list, 2, nullptr));
        CUarrayMapInfo wrong = tiles(a, h, 100, 0, 256, 256);
        REQUIRE(CU(cuMemMapArrayAsync)(&wrong, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
        wrong = tiles(a, h, 768, 512, 512, 256);
        REQUIRE(CU(cuMemMapArrayAsync)(&wrong, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
        wrong = tiles(a, h, 0, 0, 256, 256, 2 * MiB);
        REQUIRE(CU(cuMemMapArrayAsync)(&wrong, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
        const auto in = pattern(1000 * 600);
        write(a, in, 1000, 600);
        const auto out = read(a, 1000, 600);
        size_t kept = 0;
        for (size_t y = 0; y < 600; ++y)
          for (size_t x = 0; x < 1000; ++x) {
            const bool memory = (x < 512 && y < 256) || (x >= 768 && y >= 512);
            REQUIRE(out[y * 1000 + x] == (memory ? in[y * 1000 + x] : 0));
            kept += memory;
          }
        REQUIRE(kept == 512 * 256 + 232 * 88);
        // Maps the same memory at a second position, which then has the tile's bytes.
        CUarrayMapInfo twin = tiles(a, h, 512, 0, 256, 256, 64 * KiB);
        OK(CU(cuMemMapArrayAsync)(&twin, 1, nullptr));
        const auto again = read(a, 1000, 600);
        REQUIRE(again[300 * 0 + 512 + 5] == in[256 + 5]);
        OK(CU(cuMemRelease)(h));
        REQUIRE(free_now() == before - 2 * MiB);
        OK(CU(cuArrayDestroy)(a));
        REQUIRE(free_now() == before);
      }));
}

TEST_F(DriverTest, the_small_levels_of_a_sparse_array_share_one_tail) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUDA_ARRAY3D_DESCRIPTOR d = {512, 512, 0, byte_format, 1, CUDA_ARRAY3D_SPARSE};
              CUmipmappedArray m = nullptr;
              CUDA_ARRAY_SPARSE_PROPERTIES p = {};
              OK(CU(cuMipmappedArrayCreate)(&m, &d, 10));
              OK(CU(cuMipmappedArrayGetSparseProperties)(&p, m));
              REQUIRE(p.miptailFirstLevel == 2 && p.miptailSize % (64 * KiB) == 0);
              CUarray third = nullptr;
              OK(CU(cuMipmappedArrayGetLevel)(&third, m, 2));
              REQUIRE(CU(cuArrayGetSparseProperties)(&p, third) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuMipmappedArrayGetSparseProperties)(&p, m));
              const auto in = pattern(128 * 128);
              write(third, in, 128, 128);
              REQUIRE(read(third, 128, 128) == std::vector<char>(128 * 128));
              CUarrayMapInfo info = mapping(nullptr, tile_pool(2 * MiB));
              info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
              info.resource.mipmap = m;
              info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
              info.subresource.miptail.size = p.miptailSize;
              OK(CU(cuMemMapArrayAsync)(&info, 1, nullptr));
              write(third, in, 128, 128);
              REQUIRE(read(third, 128, 128) == in);
            }));
}

}  // namespace
}  // namespace carve::sim
