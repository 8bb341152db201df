// Contexts: creation, primary contexts, the current context, limits. A context owns one of the model's 64
// slots and its overhead in memory.
#include "sim/libcuda/capture.h"
#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/schedule.h"
#include "sim/libcuda/stream_pool.h"

using namespace carve::sim;

namespace {

constexpr unsigned context_flags = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                                   CU_CTX_SYNC_MEMOPS | CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;

CUresult create(CUcontext* out, unsigned flags, CUdevice visible, unsigned version, int affinities = 0) {
  unsigned device = 0;
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = device_of(visible, &device)) return e;
  if (flags & ~context_flags) return CUDA_ERROR_INVALID_VALUE;
  if (affinities) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = create_context(device, flags, false, &c)) return e;
  c->version = version;
  push_context(c.get());
  *out = c.get();
  return CUDA_SUCCESS;
}

struct DefaultLimit {
  CUlimit which;
  size_t value;
};
constexpr DefaultLimit default_limits[] = {{CU_LIMIT_STACK_SIZE, 1024},
                                           {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                                           {CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20},
                                           {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                                           {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                                           {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                                           {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};

const DefaultLimit* default_limit(CUlimit which) {
  for (const DefaultLimit& l : default_limits)
    if (l.which == which) return &l;
  return nullptr;
}

// The maximum local memory of one thread ("Technical Specifications per Compute Capability", CUDA programming
// guide).
constexpr size_t max_stack_bytes = 512 << 10;

// Returns the memory that a limit requires in addition to the context's overhead, which covers the default
// limits. Every thread that can be resident has a stack.
uint64_t bytes_for(const Facts& f, const DefaultLimit& limit, size_t value) {
  const uint64_t more = value > limit.value ? value - limit.value : 0;
  uint64_t each = 0;
  if (limit.which == CU_LIMIT_PRINTF_FIFO_SIZE || limit.which == CU_LIMIT_MALLOC_HEAP_SIZE) each = 1;
  if (limit.which == CU_LIMIT_STACK_SIZE) each = uint64_t{f.multiprocessors} * f.threads_per_multiprocessor;
  return (more * each + memory_block_bytes - 1) / memory_block_bytes * memory_block_bytes;
}

CUresult set_limit(CUctx_st& c, const DefaultLimit& limit, size_t value) {
  if (value > 1ull << 40) return CUDA_ERROR_OUT_OF_MEMORY;
  if (limit.which == CU_LIMIT_STACK_SIZE && value > max_stack_bytes) return CUDA_ERROR_INVALID_VALUE;
  const Facts& f = c.own_device().facts;
  const std::lock_guard lock(process().mutex);
  const auto set = c.limits.find(limit.which);
  const uint64_t before = set == c.limits.end() ? 0 : bytes_for(f, limit, set->second);
  const uint64_t after = bytes_for(f, limit, value);
  if (after > before)
    if (const CUresult e = heap_take_blocks(c, after - before)) return e;
  if (after < before) heap_give_blocks(c, before - after);
  c.limits[limit.which] = value;
  return CUDA_SUCCESS;
}

CUresult synchronize(CUctx_st& c) {
  const CUresult e = wait_idle(c);
  if (e == CUDA_SUCCESS) release_unused(c.device);
  return e;
}

// Releases one use of a primary context, or all uses. The context is created by its first use and destroyed
// with its last.
CUresult release_primary(unsigned device, bool all) {
  std::shared_ptr<CUctx_st> dying;
  {
    const std::lock_guard lock(process().mutex);
    Primary& p = process().primaries[device];
    if (!p.references) return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    p.references = all ? 0 : p.references - 1;
    if (p.references == 0) dying = std::move(p.context);
  }
  if (dying) destroy_context(dying);
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  return create(out, flags, device, 3020);
}
EXPORT CUresult cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device) {
  return create(out, flags, device, 3010);
}
EXPORT CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int count, unsigned int flags,
                               CUdevice device) {
  return create(out, flags, device, 3020, count);
}
EXPORT CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* p, unsigned int flags, CUdevice device) {
  if (p && p->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
  return create(out, flags, device, 3020, p ? p->numExecAffinityParams : 0);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext handle) {
  if (const CUresult e = entered()) return e;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  const auto c = find_context(handle);
  if (!c || c->primary) return CUDA_ERROR_INVALID_CONTEXT;
  destroy_context(c);
  if (top_context() == handle) replace_top_context(nullptr);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxDestroy(CUcontext handle) { return cuCtxDestroy_v2(handle); }
EXPORT CUresult cuCtxDetach(CUcontext handle) {
  if (const CUresult e = has_context(); e == CUDA_ERROR_INVALID_CONTEXT) return e;
  return cuCtxDestroy_v2(handle);
}

// CUDA 3 counted the users of a context. Here, attaching returns the current context, and detaching destroys
// it.
EXPORT CUresult cuCtxAttach(CUcontext* out, unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  *out = c.get();
  return CUDA_SUCCESS;
}

// Without MPS, a context may use every multiprocessor.
EXPORT CUresult cuCtxGetExecAffinity(CUexecAffinityParam* out, CUexecAffinityType type) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  out->type = type;
  out->param.smCount.val = c->own_device().facts.multiprocessors;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  if (const CUresult e = entered()) return e;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (!find_context(handle)) return CUDA_ERROR_INVALID_CONTEXT;
  push_context(handle);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxPushCurrent(CUcontext handle) { return cuCtxPushCurrent_v2(handle); }

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  if (const CUresult e = entered()) return e;
  CUctx_st* popped = nullptr;
  if (!pop_context(&popped)) return CUDA_ERROR_INVALID_CONTEXT;
  if (out) *out = popped;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxPopCurrent(CUcontext* out) { return cuCtxPopCurrent_v2(out); }

EXPORT CUresult cuCtxSetCurrent(CUcontext handle) {
  if (const CUresult e = entered()) return e;
  if (handle && !find_context(handle)) return CUDA_ERROR_INVALID_CONTEXT;
  replace_top_context(handle);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext* out) {
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = top_context();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current_even_broken(&c)) return e;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = visible_of(c->device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  if (const CUresult e = entered()) return e;
  if (!handle) return cuCtxGetDevice(device);
  const auto c = find_context(handle);
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = visible_of(c->device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetFlags(unsigned int* flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = c->flags;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetFlags(unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (flags & ~context_flags) return CUDA_ERROR_INVALID_VALUE;
  c->flags = flags;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  std::shared_ptr<CUctx_st> c;
  if (handle) {
    if (const CUresult e = entered()) return e;
    c = find_context(handle);
    if (!c) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  } else if (const CUresult e = current(&c)) {
    return e;
  }
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  *id = c->id;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  std::shared_ptr<CUctx_st> c;
  if (handle) {
    if (const CUresult e = entered()) return e;
    c = find_context(handle);
    if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  } else if (const CUresult e = current(&c)) {
    return e;
  }
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = c->version;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize() {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (const CUresult e = refuse_wait(*c)) return e;
  return synchronize(*c);
}
EXPORT CUresult cuCtxSynchronize_v2(CUcontext handle) {
  if (!handle) return cuCtxSynchronize();
  if (const CUresult e = entered()) return e;
  const auto c = find_context(handle);
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult e = refuse_wait(*c)) return e;
  return synchronize(*c);
}

EXPORT CUresult cuCtxGetLimit(size_t* value, CUlimit which) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  const DefaultLimit* known = default_limit(which);
  if (!known) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const std::lock_guard lock(process().mutex);
  const auto set = c->limits.find(which);
  *value = set == c->limits.end() ? known->value : set->second;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetLimit(CUlimit which, size_t value) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  const DefaultLimit* known = default_limit(which);
  return known ? set_limit(*c, *known, value) : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

EXPORT CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = c->cache;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  c->cache = config;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = c->shared_config;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  c->shared_config = config;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxResetPersistingL2Cache() {
  std::shared_ptr<CUctx_st> c;
  return current(&c);
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  const auto other = find_context(peer);
  if (!other || other == c) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  return c->peers.insert(peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  const std::lock_guard lock(process().mutex);
  return c->peers.erase(peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice visible) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  static std::mutex one_at_a_time;  // Two threads that both retain first must get the same context.
  const std::lock_guard making(one_at_a_time);
  {
    const std::lock_guard lock(process().mutex);
    Primary& p = process().primaries[device];
    if (p.references) {
      ++p.references;
      *out = p.context.get();
      return CUDA_SUCCESS;
    }
  }
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = create_context(device, process().primaries[device].flags, true, &c)) return e;
  const std::lock_guard lock(process().mutex);
  process().primaries[device].context = c;
  process().primaries[device].references = 1;
  *out = c.get();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice visible) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  return release_primary(device, false);
}
// The version of CUDA 7 accepts a release without a retain.
EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice visible) {
  const CUresult e = cuDevicePrimaryCtxRelease_v2(visible);
  return e == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : e;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice visible) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  return release_primary(device, true);
}
EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice visible) { return cuDevicePrimaryCtxReset_v2(visible); }

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice visible, unsigned int flags) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  if (flags & ~context_flags) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  process().primaries[device].flags = flags;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice visible, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(visible, flags);
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice visible, unsigned int* flags, int* active) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  const std::lock_guard lock(process().mutex);
  const Primary& p = process().primaries[device];
  if (flags) *flags = p.flags;
  if (active) *active = p.references > 0;
  return CUDA_SUCCESS;
}
