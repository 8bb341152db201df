// The calls that create, select and describe memory pools. Each device has a default pool, which cannot be
// destroyed, and a current pool, from which cuMemAllocAsync allocates. The host also has both.
#include <cstring>

#include "sim/libcuda/pools.h"

using namespace carve::sim;

namespace {

CUresult device_pool(CUmemoryPool* out, CUdevice visible, bool standard) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(pools().mutex);
  *out = standard ? pools().standard_of(device, false) : pools().current_of(device, false);
  return CUDA_SUCCESS;
}

CUresult choose(unsigned device, bool host, CUmemoryPool pool) {
  const std::lock_guard lock(pools().mutex);
  if (!pools().known(pool) || pool->host != host || (!host && pool->device != device))
    return CUDA_ERROR_INVALID_VALUE;
  (host ? pools().current_host : pools().current[device]) = pool;
  return CUDA_SUCCESS;
}

// Reads the location of a pool: a device, or the host in any of its forms.
CUresult location(const CUmemLocation* l, unsigned* device, bool* host) {
  if (!l) return CUDA_ERROR_INVALID_VALUE;
  *host = false;
  switch (l->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return device_of(l->id, device);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: *host = true; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult pool_at(CUmemoryPool* out, const CUmemLocation* l, CUmemAllocationType type, bool standard) {
  unsigned device = 0;
  bool host = false;
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = location(l, &device, &host)) return e;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(pools().mutex);
  *out = standard ? pools().standard_of(device, host) : pools().current_of(device, host);
  return CUDA_SUCCESS;
}

struct Flag {
  CUmemPool_attribute which;
  int CUmemPoolHandle_st::*value;
};
constexpr Flag pool_flags[] = {
    {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &CUmemPoolHandle_st::follow_events},
    {CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &CUmemPoolHandle_st::opportunistic},
    {CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &CUmemPoolHandle_st::internal_dependencies}};

}  // namespace

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return device_pool(out, device, true);
}
EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  const CUresult e = device_pool(out, device, false);
  return e == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : e;
}
EXPORT CUresult cuDeviceSetMemPool(CUdevice visible, CUmemoryPool pool) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  return choose(device, false, pool);
}
EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* l, CUmemAllocationType type) {
  return pool_at(out, l, type, true);
}
EXPORT CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* l, CUmemAllocationType type) {
  return pool_at(out, l, type, false);
}
EXPORT CUresult cuMemSetMemPool(CUmemLocation* l, CUmemAllocationType type, CUmemoryPool pool) {
  unsigned device = 0;
  bool host = false;
  if (const CUresult e = entered()) return e;
  if (const CUresult e = location(l, &device, &host)) return e;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  return choose(device, host, pool);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  unsigned device = 0;
  bool host = false;
  if (const CUresult e = entered()) return e;
  if (!out || !props) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = location(&props->location, &device, &host)) return e;
  if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const std::lock_guard lock(pools().mutex);
  *out = pools().make(device, host);
  (*out)->most = props->maxSize;
  (*out)->handle_types = props->handleTypes;
  return CUDA_SUCCESS;
}

// The handle becomes invalid immediately; the memory is released when all of it is free and its work is done.
EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  if (const CUresult e = entered()) return e;
  Pools& p = pools();
  unsigned device = 0;
  {
    const std::lock_guard lock(p.mutex);
    if (!p.known(pool) || pool->standard) return CUDA_ERROR_INVALID_VALUE;
    pool->destroyed = true;
    device = pool->device;
    for (CUmemoryPool& current : p.current)
      if (current == pool) current = nullptr;
    if (p.current_host == pool) p.current_host = nullptr;
  }
  release_unused(device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(pools().mutex);
  if (!pools().known(pool)) return CUDA_ERROR_INVALID_VALUE;
  trim(*pool, keep);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(pools().mutex);
  if (!value || !pools().known(pool)) return CUDA_ERROR_INVALID_VALUE;
  for (const Flag& flag : pool_flags)
    if (flag.which == which) {
      std::memcpy(value, &(pool->*flag.value), sizeof(int));
      return CUDA_SUCCESS;
    }
  cuuint64_t amount = 0;
  switch (which) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: amount = pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: amount = pool->book.reserved(); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: amount = pool->book.reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: amount = pool->book.used(); break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: amount = pool->book.used_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(value, &amount, sizeof amount);
  return CUDA_SUCCESS;
}

// High-water marks can only be reset to the current value.
EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(pools().mutex);
  if (!value || !pools().known(pool)) return CUDA_ERROR_INVALID_VALUE;
  for (const Flag& flag : pool_flags)
    if (flag.which == which) {
      int on = 0;
      std::memcpy(&on, value, sizeof on);
      pool->*flag.value = on != 0;
      return CUDA_SUCCESS;
    }
  cuuint64_t amount = 0;
  std::memcpy(&amount, value, sizeof amount);
  switch (which) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = amount; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (amount) return CUDA_ERROR_INVALID_VALUE;
      pool->book.reserved_high = pool->book.reserved();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (amount) return CUDA_ERROR_INVALID_VALUE;
      pool->book.used_high = pool->book.used();
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// The pool's own device always has access. This call grants it to other devices and revokes it.
EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  if (const CUresult e = entered()) return e;
  if (!map && count) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(pools().mutex);
  if (!pools().known(pool)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    unsigned device = 0;
    bool host = false;
    if (const CUresult e = location(&map[i].location, &device, &host)) return e;
    if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
    if (!host && !pool->host && device == pool->device) {
      if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_ERROR_INVALID_DEVICE;
      continue;
    }
    if (host) return pool->host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    pool->access[device] = map[i].flags;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* l) {
  unsigned device = 0;
  bool host = false;
  if (const CUresult e = entered()) return e;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = location(l, &device, &host)) return e;
  const std::lock_guard lock(pools().mutex);
  if (!pools().known(pool)) return CUDA_ERROR_INVALID_VALUE;
  const auto granted = pool->access.find(device);
  const bool own = host ? pool->host : !pool->host && device == pool->device;
  *flags = own                                     ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : host || granted == pool->access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                                   : granted->second;
  return CUDA_SUCCESS;
}
