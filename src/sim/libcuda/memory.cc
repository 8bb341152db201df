// Memory calls: amounts, allocations, host memory, and the properties of a pointer.
#include "sim/model/memory.h"

#include <cstring>

#include "sim/libcuda/capture.h"
#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/external.h"
#include "sim/libcuda/graph_memory.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/holding.h"
#include "sim/libcuda/pools.h"
#include "sim/libcuda/schedule.h"

using namespace carve::sim;

namespace {

constexpr uint64_t pitch_bytes = 512;

CUresult host_alloc(void** out, size_t bytes, unsigned flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  return heap_allocate_host(c.get(), bytes, flags, out);
}

}  // namespace

EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = entered()) return e;
  if (free) *free = 0;
  if (total) *total = 0;
  if (const CUresult e = current(&c)) return e;
  if (!free && !total) return CUDA_ERROR_INVALID_VALUE;
  Device& d = c->own_device();
  const Locked lock(d);
  sweep(process().set, c->device, now_ns());
  if (free) *free = free_bytes(d);
  if (total) *total = total_bytes(d);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = entered()) return e;
  if (out) *out = 0;
  if (const CUresult e = current(&c)) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = 0;
  const CUresult e = heap_allocate(*c, bytes, &base);
  if (e == CUDA_SUCCESS) *out = base;
  return e;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                   unsigned int element) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = entered()) return e;
  if (out) *out = 0;
  if (pitch) *pitch = 0;
  if (const CUresult e = current(&c)) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  if (!out || !pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
    return CUDA_ERROR_INVALID_VALUE;
  const uint64_t row = (width + pitch_bytes - 1) / pitch_bytes * pitch_bytes;
  uint64_t bytes = 0, base = 0;
  if (row < width || __builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult e = heap_allocate(*c, bytes, &base)) return e;
  *out = base;
  *pitch = row;
  return CUDA_SUCCESS;
}

// Without a current context, the driver checks the pointer first.
EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  const CUresult context = has_context();
  if (context && context != CUDA_ERROR_INVALID_CONTEXT) return context;
  if (const CUresult e = refuse_unsafe_call()) return e;
  if (pointer == 0) return CUDA_SUCCESS;
  HeapRecord a;
  if (!heap_find(pointer, &a) || a.base != pointer) return CUDA_ERROR_INVALID_VALUE;
  if (context) return context;
  if (a.kind == Memory::pool) {
    wait_device(a.device);
    return free_pooled(pointer, {});
  }
  if (a.kind == Memory::graph) {
    wait_device(a.device);
    return graph_memory_free(pointer, {});
  }
  if (a.kind == Memory::external) {
    wait_device(a.device);
    return free_external(pointer);
  }
  // Waits for work that may still use the memory.
  if (const auto owner = find_context(a.context)) wait_idle(*owner);
  return heap_free(pointer, Memory::device, Memory::managed);
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  HeapRecord a;
  if (!heap_find(pointer, &a)) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = a.base;
  if (bytes) *bytes = a.bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocHost_v2(void** out, size_t bytes) { return host_alloc(out, bytes, 0); }
EXPORT CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned int flags) {
  if (flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
  return host_alloc(out, bytes, flags);
}

EXPORT CUresult cuMemFreeHost(void* p) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  if (!p) return CUDA_SUCCESS;
  HeapRecord a;
  if (heap_find(reinterpret_cast<uint64_t>(p), &a))
    if (const auto owner = find_context(a.context)) wait_idle(*owner);
  return heap_free(reinterpret_cast<uint64_t>(p), Memory::host, Memory::host);
}

EXPORT CUresult cuMemHostRegister_v2(void* p, size_t bytes, unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (flags & ~15u) return CUDA_ERROR_INVALID_VALUE;
  return heap_register_host(c.get(), p, bytes, flags);
}
EXPORT CUresult cuMemHostRegister(void* p, size_t bytes, unsigned int flags) {
  return cuMemHostRegister_v2(p, bytes, flags);
}

EXPORT CUresult cuMemHostUnregister(void* p) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  const CUresult e = heap_free(reinterpret_cast<uint64_t>(p), Memory::registered, Memory::registered);
  return e ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* p, unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  HeapRecord a;
  if (!out || flags || !heap_find(reinterpret_cast<uint64_t>(p), &a)) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<uint64_t>(p);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetFlags(unsigned int* flags, void* p) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  HeapRecord a;
  if (!flags || !heap_find(reinterpret_cast<uint64_t>(p), &a)) return CUDA_ERROR_INVALID_VALUE;
  if (a.kind != Memory::host && a.kind != Memory::registered) return CUDA_ERROR_INVALID_VALUE;
  *flags = a.flags;
  return CUDA_SUCCESS;
}

namespace {

// Writes one attribute. `a` is null for memory that the driver does not know: cuPointerGetAttribute rejects
// such a pointer before this call, and cuPointerGetAttributes returns empty values for it.
CUresult pointer_attribute(void* out, int which, const HeapRecord* a, CUdeviceptr pointer) {
  const bool host =
      a && (a->kind == Memory::host || a->kind == Memory::registered || (a->pool && a->pool->host));
  const auto put = [&](auto value) {
    std::memcpy(out, &value, sizeof value);
    return CUDA_SUCCESS;
  };
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(reinterpret_cast<uint64_t>(a ? a->context : nullptr));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(!a ? 0u : static_cast<unsigned>(host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(a ? pointer : CUdeviceptr{0});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (a && !host && a->kind != Memory::managed) return CUDA_ERROR_INVALID_VALUE;
      return put(a ? pointer : uint64_t{0});
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put(0u);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put(a ? a->id : 0ull);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(a && a->kind == Memory::managed ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(a ? (host && a->pool ? CU_DEVICE_CPU : visible_of(a->device)) : CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(a && a->kind == Memory::device ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(a ? a->base : CUdeviceptr{0});
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(a ? size_t{a->bytes} : size_t{0});
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(a ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(uint64_t{a && a->pool ? a->pool->handle_types : CU_MEM_HANDLE_TYPE_NONE});
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put(a ? a->access : 0u);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put(reinterpret_cast<uint64_t>(a ? a->pool : nullptr));
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

EXPORT CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  if (const CUresult e = entered()) return e;
  HeapRecord a;
  if (!data || !heap_find(pointer, &a)) return CUDA_ERROR_INVALID_VALUE;
  return pointer_attribute(data, attribute, &a, pointer);
}

EXPORT CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                       CUdeviceptr pointer) {
  if (const CUresult e = entered()) return e;
  if (!count || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  HeapRecord a;
  const bool known = heap_find(pointer, &a);
  for (unsigned i = 0; i < count; ++i)
    if (const CUresult e = pointer_attribute(data[i], attributes[i], known ? &a : nullptr, pointer)) {
      if (attributes[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER) return e;
      std::memset(data[i], 0, sizeof(void*));
    }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  if (const CUresult e = entered()) return e;
  HeapRecord a;
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !heap_find(pointer, &a))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
