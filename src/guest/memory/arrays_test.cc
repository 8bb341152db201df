#include <map>

#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

std::map<uint64_t, CUDA_ARRAY3D_DESCRIPTOR>* arrays = nullptr;
bool refuses_twins = false;

template <class Handle>
CUresult make(Handle* out, const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (refuses_twins && (d.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  static uint64_t next = 0x9000;
  *out = reinterpret_cast<Handle>(next += 0x10);
  (*arrays)[next] = d;
  return take_result();
}

// Returns the memory requirement of an array in this fake driver, whose rows take multiples of 4 KiB.
CUresult needs(CUDA_ARRAY_MEMORY_REQUIREMENTS* r, uint64_t array) {
  const auto& d = (*arrays)[array];
  if ((d.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) return CUDA_ERROR_INVALID_VALUE;
  r->size = (d.Width * d.NumChannels + 4095) / 4096 * 4096 * std::max<size_t>(d.Height, 1) *
            std::max<size_t>(d.Depth, 1);
  return CUDA_SUCCESS;
}

class Arrays : public DriverTest {
 protected:
  Arrays() {
    arrays = &arrays_;
    refuses_twins = false;
    on<&cuArray3DCreate_v2>([](CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) { return make(out, *d); });
    on<&cuArrayCreate_v2>([](CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
      return make(out, {d->Width, d->Height, 0, d->Format, d->NumChannels, 0});
    });
    on<&cuMipmappedArrayCreate>(
        [](CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned) { return make(out, *d); });
    on<&cuArrayDestroy>([](CUarray a) {
      arrays->erase(reinterpret_cast<uint64_t>(a));
      return take_result();
    });
    on<&cuMipmappedArrayDestroy>([](CUmipmappedArray a) {
      arrays->erase(reinterpret_cast<uint64_t>(a));
      return take_result();
    });
    on<&cuArrayGetMemoryRequirements>([](CUDA_ARRAY_MEMORY_REQUIREMENTS* r, CUarray a, CUdevice) {
      return needs(r, reinterpret_cast<uint64_t>(a));
    });
    on<&cuMipmappedArrayGetMemoryRequirements>(
        [](CUDA_ARRAY_MEMORY_REQUIREMENTS* r, CUmipmappedArray a, CUdevice) {
          return needs(r, reinterpret_cast<uint64_t>(a));
        });
  }
  static CUDA_ARRAY3D_DESCRIPTOR bytes(size_t w, size_t h, size_t d = 0, unsigned flags = 0) {
    return {w, h, d, CU_AD_FORMAT_UNSIGNED_INT8, 1, flags};
  }
  std::map<uint64_t, CUDA_ARRAY3D_DESCRIPTOR> arrays_;
};

TEST_F(Arrays, are_charged_the_size_that_the_driver_reports_for_their_twin) {
  Attached slice;
  CUarray a = nullptr;
  const CUDA_ARRAY_DESCRIPTOR d = {100, 100, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  ASSERT_EQ(cuArrayCreate_v2(&a, &d), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 7u << 16) << "400 KiB, rounded up to a multiple of 64 KiB";
  EXPECT_EQ(arrays_.size(), 1u) << "the twin was destroyed";
  CUarray b = nullptr;
  const auto large = bytes(4096, 700);
  ASSERT_EQ(cuArray3DCreate_v2(&b, &large), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), (7u << 16) + 4 * MiB);
  EXPECT_EQ(cuArrayDestroy(a), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(b), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Arrays, are_refused_over_the_quota) {
  Attached slice(1, 10 * MiB);
  const auto d = bytes(4096, 2600);
  CUarray a = nullptr;
  EXPECT_EQ(cuArray3DCreate_v2(&a, &d), CUDA_ERROR_OUT_OF_MEMORY);
  CUmipmappedArray m = nullptr;
  EXPECT_EQ(cuMipmappedArrayCreate(&m, &d, 3), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(arrays_.empty());
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Arrays, are_charged_and_refused_in_the_same_way_if_mipmapped) {
  Attached slice;
  const auto d = bytes(4096, 256);
  CUmipmappedArray m = nullptr;
  ASSERT_EQ(cuMipmappedArrayCreate(&m, &d, 3), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 1 * MiB);
  EXPECT_EQ(cuMipmappedArrayDestroy(m), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Arrays, take_no_memory_if_sparse_or_deferred) {
  Attached slice(1, MiB);
  for (const unsigned flag : {CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING}) {
    const auto d = bytes(1 << 16, 1 << 14, 0, flag);
    CUarray a = nullptr;
    EXPECT_EQ(cuArray3DCreate_v2(&a, &d), CUDA_SUCCESS);
  }
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Arrays, are_charged_an_upper_bound_if_the_driver_does_not_report_the_size) {
  Attached slice(1, 64 * MiB);
  refuses_twins = true;
  const auto flat = bytes(1000, 1000), layered = bytes(512, 128, 100, CUDA_ARRAY3D_LAYERED),
             deep = bytes(512, 128, 100), huge = bytes(SIZE_MAX, SIZE_MAX, SIZE_MAX);
  CUarray a = nullptr;
  ASSERT_EQ(cuArray3DCreate_v2(&a, &flat), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 1 * MiB) << "1,024 rows of 1,024 bytes";
  ASSERT_EQ(cuArray3DCreate_v2(&a, &layered), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 9 * MiB) << "100 layers of 64 KiB";
  ASSERT_EQ(cuArray3DCreate_v2(&a, &deep), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 17 * MiB) << "128 slices of 64 KiB";
  EXPECT_EQ(cuArray3DCreate_v2(&a, &huge), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Arrays, are_not_charged_if_the_driver_refuses_them) {
  Attached slice;
  refuses_twins = true;
  const auto d = bytes(100, 100);
  CUarray a = nullptr;
  world->next_result = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(cuArray3DCreate_v2(&a, &d), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(slice.used(), 0u);
}

TEST_F(Arrays, are_released_when_their_context_ends) {
  Attached slice(1, 10 << 20, MiB);
  on<&cuCtxCreate_v2>([](CUcontext* c, unsigned, CUdevice) {
    *c = reinterpret_cast<CUcontext>(0x4440);
    return CUDA_SUCCESS;
  });
  on<&cuCtxDestroy_v2>([](CUcontext) { return CUDA_SUCCESS; });
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  current_context = 0x4440;
  const auto d = bytes(4096, 256);
  CUarray a = nullptr;
  ASSERT_EQ(cuArray3DCreate_v2(&a, &d), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 2 * MiB);
  EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(slice.used(), 0u);
}

}  // namespace
}  // namespace carve::guest
