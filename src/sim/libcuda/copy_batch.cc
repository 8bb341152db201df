// Many linear copies in one call (cuMemcpyBatchAsync, CUDA 12.8). The copies of a batch are unordered. Here
// they run one after the other, which a program cannot distinguish from any other order. An attribute applies
// to the copies from its index up to the next attribute's index.
#include "sim/libcuda/schedule.h"
#include "sim/libcuda/step.h"

using namespace carve::sim;

namespace {

constexpr size_t no_index = SIZE_MAX;

struct Batch {
  const CUdeviceptr *to, *from;
  const size_t* sizes;
  size_t count;
  const CUmemcpyAttributes* attributes;
  const size_t* first_of;
  size_t attribute_count;
};

bool well_formed(const Batch& b) {
  if (!b.to || !b.from || !b.sizes || !b.count || !b.attributes || !b.first_of || !b.attribute_count ||
      b.attribute_count > b.count || b.first_of[0] != 0)
    return false;
  for (size_t i = 0; i < b.attribute_count; ++i) {
    const CUmemcpyAttributes& a = b.attributes[i];
    const size_t next = i + 1 < b.attribute_count ? b.first_of[i + 1] : b.count;
    if (b.first_of[i] >= next || next > b.count || a.flags > 1 ||
        a.srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
        a.srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
      return false;
  }
  return true;
}

// Submits the copies. If one cannot be submitted, *failed is its index, and the earlier ones have been
// submitted.
CUresult copy(const Batch& b, CUstream stream, size_t* failed) {
  *failed = no_index;
  if (const CUresult e = entered()) return e;
  if (!well_formed(b) || !stream || stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0, which = 0; i < b.count; ++i) {
    while (which + 1 < b.attribute_count && b.first_of[which + 1] <= i) ++which;
    CUDA_MEMCPY3D m = {};
    m.srcMemoryType = m.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    m.srcDevice = b.from[i], m.dstDevice = b.to[i];
    m.WidthInBytes = b.sizes[i], m.Height = m.Depth = 1;
    const bool at_once = b.attributes[which].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    if (const CUresult e = b.sizes[i] ? move(m, stream, at_once) : CUDA_ERROR_INVALID_VALUE)
      return *failed = i, e;
  }
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                   CUmemcpyAttributes* attributes, size_t* first_of, size_t attribute_count,
                                   size_t* failed, CUstream s) {
  size_t index = no_index;
  const CUresult e = copy({to, from, sizes, count, attributes, first_of, attribute_count}, s, &index);
  if (failed) *failed = index;
  return e;
}
EXPORT CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                        CUmemcpyAttributes* attributes, size_t* first_of,
                                        size_t attribute_count, size_t* failed, CUstream s) {
  return cuMemcpyBatchAsync(to, from, sizes, count, attributes, first_of, attribute_count, failed,
                            per_thread(s));
}
EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                      CUmemcpyAttributes* attributes, size_t* first_of,
                                      size_t attribute_count, CUstream s) {
  return cuMemcpyBatchAsync(to, from, sizes, count, attributes, first_of, attribute_count, nullptr, s);
}
EXPORT CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                           CUmemcpyAttributes* attributes, size_t* first_of,
                                           size_t attribute_count, CUstream s) {
  return cuMemcpyBatchAsync(to, from, sizes, count, attributes, first_of, attribute_count, nullptr,
                            per_thread(s));
}

// One copy with the same hints (CUDA 13.2).
EXPORT CUresult cuMemcpyWithAttributesAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                            CUmemcpyAttributes*, CUstream stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
EXPORT CUresult cuMemcpyWithAttributesAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                                 CUmemcpyAttributes*, CUstream stream) {
  return cuMemcpyAsync_ptsz(to, from, bytes, stream);
}
