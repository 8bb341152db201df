// Texture and surface objects over linear and pitched memory, through which kernels would read. Kernels are
// not executed, so an object is only its description and a number.
#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/heap.h"

using namespace carve::sim;

namespace {

struct Object {
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC texture;
};
std::map<uint64_t, Object>& views() {
  static auto* all = new std::map<uint64_t, Object>;
  return *all;
}

// Returns the bytes of the memory behind the object, or 0 for kinds that are not simulated.
uint64_t extent(const CUDA_RESOURCE_DESC& r) {
  if (r.resType == CU_RESOURCE_TYPE_LINEAR) return r.res.linear.sizeInBytes;
  if (r.resType == CU_RESOURCE_TYPE_PITCH2D && r.res.pitch2D.height)
    return (r.res.pitch2D.height - 1) * r.res.pitch2D.pitchInBytes + r.res.pitch2D.width;
  return 0;
}

CUresult create(unsigned long long* out, const CUDA_RESOURCE_DESC* resource,
                const CUDA_TEXTURE_DESC* texture) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out || !resource) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t bytes = extent(*resource);
  if (bytes == 0) return unsupported("texture and surface objects of arrays");
  // The device pointer is at the same offset for both kinds.
  HeapRecord a;
  if (!heap_find(resource->res.linear.devPtr, &a)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  *out = process().next_id.fetch_add(1);
  views()[*out] = {*resource, texture ? *texture : CUDA_TEXTURE_DESC{}};
  return CUDA_SUCCESS;
}

CUresult destroy(unsigned long long object) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(process().mutex);
  return views().erase(object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult describe(unsigned long long object, CUDA_RESOURCE_DESC* resource, CUDA_TEXTURE_DESC* texture) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(process().mutex);
  const auto found = views().find(object);
  if (found == views().end()) return CUDA_ERROR_INVALID_VALUE;
  if (resource) *resource = found->second.resource;
  if (texture) *texture = found->second.texture;
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuTexObjectCreate(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                                  const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC*) {
  if (!texture) return CUDA_ERROR_INVALID_VALUE;
  return create(out, resource, texture);
}
EXPORT CUresult cuTexObjectDestroy(CUtexObject object) { return destroy(object); }
EXPORT CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUtexObject object) {
  return out ? describe(object, out, nullptr) : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* out, CUtexObject object) {
  return out ? describe(object, nullptr, out) : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuSurfObjectCreate(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  return create(out, resource, nullptr);
}
EXPORT CUresult cuSurfObjectDestroy(CUsurfObject object) { return destroy(object); }
