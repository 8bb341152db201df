// Stream-ordered memory: cuMemAllocAsync from a device's pool, cuMemAllocFromPoolAsync from any pool.
// memory_pool.h describes how pools are charged. This file finds the pool of a call and tracks its
// suballocations.
//
// * The default stream and streams of the current context: the current device's pool. Otherwise the driver
//   reports the device of the stream's context.
// * While a stream is captured the call becomes a node of a graph and takes no memory now (graphs.cc).
// * A pool of host memory and a pool imported from another process hold no device memory of their own: known,
//   but not charged.
// * Each suballocation has a record, 32 bytes, that names its pool. So cuMemFree of a suballocation (which is
//   valid and waits) settles the right pool. A pool that was destroyed with live suballocations keeps its
//   charge until they are freed.
#include "guest/memory/location.h"
#include "guest/memory/memory_pool.h"

#include "guest/launch/busy_time.h"

using namespace carve;
using namespace carve::guest;

namespace {

struct Where {
  CUresult result;
  CUdevice ordinal;
};

Where device_of(CUstream stream) {
  CUdevice ordinal = 0;
  CUcontext this_thread = nullptr, its = nullptr;
  const auto number = reinterpret_cast<uint64_t>(stream);
  const bool named = number > reinterpret_cast<uint64_t>(CU_STREAM_PER_THREAD);
  if (named && driver<&cuCtxGetCurrent>(&this_thread) == CUDA_SUCCESS &&
      driver<&cuStreamGetCtx>(stream, &its) == CUDA_SUCCESS && its != this_thread &&
      driver<&cuCtxPushCurrent_v2>(its) == CUDA_SUCCESS) {
    const CUresult result = driver<&cuCtxGetDevice>(&ordinal);
    driver<&cuCtxPopCurrent_v2>(&its);
    return {result, ordinal};
  }
  return {driver<&cuCtxGetDevice>(&ordinal), ordinal};
}

// Returns whether a call in this stream would become part of a graph, or fail for that reason.
template <auto IsCapturing>
bool captured(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver<IsCapturing>(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

template <class Allocate>
CUresult allocated(Process& p, Pool* pool, CUdeviceptr* pointer, size_t bytes, CUstream stream,
                   Allocate allocate) {
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (pool->kind.load(std::memory_order_relaxed) != Pool::Kind::charged || bytes == 0 || pointer == nullptr)
    return allocate();
  const auto undo = [&] {
    pool->lock.assume_held();
    driver<&cuMemFree_v2>(*pointer);
    driver<&cuMemPoolTrimTo>(reinterpret_cast<CUmemoryPool>(pool->handle.load()),
                             minus(charged(p, *pool), {pool->released}).count);
    return true;
  };
  const Bytes takes = rounded_up({bytes}, 512_B);
  return growing(
      p, *pool, {bytes},
      [&](const Pool& full) {
        full.lock.assume_held();
        return has_free_block(full, takes, reinterpret_cast<uint64_t>(stream));
      },
      [&] {
        pool->lock.assume_held();
        Bytes before, after;
        const bool known = ask_reserved(*pool, &before);
        const CUresult result = allocate();
        if (result != CUDA_SUCCESS) return result;
        if (known && ask_reserved(*pool, &after) && after > before) {
          // The suballocation is at the beginning of the new chunk; the rest is free for all streams.
          const Bytes tail = minus(minus(after, before), takes);
          if (tail.count != 0) add_free_block(*pool, {*pointer + takes.count, tail.count, any_stream});
        }
        Record suballocation = record_of(*pointer, 0, {takes.count, in_pool, 0}), previous;
        pool->handed.fetch_add(1, std::memory_order_release);
        use_free_block(*pool, *pointer, takes);
        suballocation.uses = static_cast<uint32_t>(pool - p.pool);
        pool->live.fetch_add(1, std::memory_order_relaxed);
        if (p.allocations.put(suballocation, &previous)) {
          if (previous.key != 0) give_back(p, previous.charge());
          return result;
        }
        pool->live.fetch_sub(1, std::memory_order_relaxed);
        undo();
        return CUDA_ERROR_OUT_OF_MEMORY;
      },
      [&] {
        Record suballocation;
        if (p.allocations.take(*pointer, &suballocation)) pool->live.fetch_sub(1, std::memory_order_relaxed);
        return undo();
      });
}

template <auto Entry, auto IsCapturing>
CUresult from_device(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  const auto allocate = [=] { return driver<Entry>(pointer, bytes, stream); };
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (entered.process == nullptr || captured<IsCapturing>(stream)) return allocate();
  Process& p = *entered.process;
  const Where where = device_of(stream);
  if (where.result != CUDA_SUCCESS) return where.result;
  const DeviceLookup found = find_device(p, where.ordinal);
  if (found.result != CUDA_SUCCESS) return found.result;
  CUmemoryPool handle = nullptr;
  const CUresult result = driver<&cuDeviceGetMemPool>(&handle, where.ordinal);
  if (result != CUDA_SUCCESS) return result;
  return allocated(p, pool_of(p, handle, found.device), pointer, bytes, stream, allocate);
}

template <auto Entry, auto IsCapturing>
CUresult from_pool(CUdeviceptr* pointer, size_t bytes, CUmemoryPool handle, CUstream stream) {
  const auto allocate = [=] { return driver<Entry>(pointer, bytes, handle, stream); };
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (entered.process == nullptr || captured<IsCapturing>(stream)) return allocate();
  Process& p = *entered.process;
  Pool* pool = find_pool(p, handle);
  if (pool == nullptr) {  // Set before the library was loaded; assume the current device's pool.
    const Current where = current(p);
    if (where.result != CUDA_SUCCESS) return where.result;
    pool = pool_of(p, handle, where.device);
  }
  return allocated(p, pool, pointer, bytes, stream, allocate);
}

// Records a pool of a device's memory that the driver reported.
void seen(CUmemoryPool handle, CUdevice ordinal) {
  Process* p = attached();
  if (p == nullptr) return;
  const DeviceLookup found = find_device(*p, ordinal);
  if (found.result == CUDA_SUCCESS) pool_of(*p, handle, found.device);
}

// A managed pool's location is only a preference (cuda.h, cuMemPoolCreate): if it names no device, the pool
// is charged to the current device, like cuMemAllocManaged, and it is not entered before its first
// allocation.
void seen(CUmemoryPool handle, const CUmemLocation* location, CUmemAllocationType type) {
  Process* p = attached();
  if (p == nullptr || location == nullptr) return;
  if (is_on_device(*location)) {
    seen(handle, device_in(*location));
  } else if (type != CU_MEM_ALLOCATION_TYPE_MANAGED) {
    pool_of(*p, handle, not_granted, false);
  }
}

// Settles the pools that a call may have allowed to shrink.
CUresult settled(CUmemoryPool handle, CUresult result) {
  Process* p = attached();
  Pool* pool = p != nullptr ? find_pool(*p, handle) : nullptr;
  if (pool == nullptr) return result;
  pool->lock.lock();
  settle(*p, *pool);
  pool->lock.unlock();
  return result;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return from_device<&cuMemAllocAsync, &cuStreamIsCapturing>(pointer, bytes, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return from_device<&cuMemAllocAsync_ptsz, &cuStreamIsCapturing_ptsz>(pointer, bytes, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return from_pool<&cuMemAllocFromPoolAsync, &cuStreamIsCapturing>(pointer, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return from_pool<&cuMemAllocFromPoolAsync_ptsz, &cuStreamIsCapturing_ptsz>(pointer, bytes, pool, stream);
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  const CUresult result = driver<&cuMemPoolCreate>(pool, props);
  if (result == CUDA_SUCCESS && pool != nullptr && props != nullptr)
    seen(*pool, &props->location, props->allocType);
  return result;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  Process* p = attached();
  Pool* pool = p != nullptr ? find_pool(*p, handle) : nullptr;
  if (pool == nullptr) return driver<&cuMemPoolDestroy>(handle);
  pool->lock.lock();
  const CUresult result = driver<&cuMemPoolDestroy>(handle);
  if (result == CUDA_SUCCESS) forget(*p, *pool);
  pool->lock.unlock();
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  return settled(pool, driver<&cuMemPoolTrimTo>(pool, keep));
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return settled(pool, driver<&cuMemPoolSetAttribute>(pool, attribute, value));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  const CUresult result = driver<&cuDeviceGetDefaultMemPool>(pool, device);
  if (result == CUDA_SUCCESS && pool != nullptr) seen(*pool, device);
  return result;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  const CUresult result = driver<&cuDeviceGetMemPool>(pool, device);
  if (result == CUDA_SUCCESS && pool != nullptr) seen(*pool, device);
  return result;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  const CUresult result = driver<&cuMemGetDefaultMemPool>(pool, location, type);
  if (result == CUDA_SUCCESS && pool != nullptr) seen(*pool, location, type);
  return result;
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  const CUresult result = driver<&cuMemGetMemPool>(pool, location, type);
  if (result == CUDA_SUCCESS && pool != nullptr) seen(*pool, location, type);
  return result;
}

// Calls at which a pool releases the memory above its threshold (CUDA driver API, "Stream Ordered Memory
// Allocator"), and at which a thread may have no work left (busy_time.h).
namespace {

template <auto Entry, class... A>
CUresult waited(uint64_t what, A... a) {
  const Waiting waiting(what);
  return driver<Entry>(a...);
}

}  // namespace

CUresult cuCtxSynchronize() {
  const CUresult result = waited<&cuCtxSynchronize>(whole_context);
  synchronized();
  return result;
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  const CUresult result = waited<&cuCtxSynchronize_v2>(unknown_work, context);
  synchronized();
  return result;
}

CUresult cuStreamSynchronize(CUstream stream) {
  const CUresult result = waited<&cuStreamSynchronize>(named(stream), stream);
  synchronized(stream);
  return result;
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  const CUresult result = waited<&cuStreamSynchronize_ptsz>(named(stream, true), stream);
  synchronized(stream);
  return result;
}

CUresult cuEventSynchronize(CUevent event) {
  const CUresult result = waited<&cuEventSynchronize>(unknown_work, event);
  synchronized(uint64_t{0});  // It is unknown which stream's work that was.
  return result;
}
