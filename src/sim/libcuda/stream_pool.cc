// One mutex guards all pools of the process. Submissions that may block are made without holding it.
#include "sim/libcuda/stream_pool.h"

#include <sys/mman.h>

#include "sim/libcuda/capture.h"
#include "sim/libcuda/graph_memory.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/holding.h"
#include "sim/libcuda/imported.h"
#include "sim/libcuda/pools.h"
#include "sim/libcuda/schedule.h"
#include "sim/libcuda/step.h"
#include "sim/model/device_engine.h"

using namespace carve::sim;

namespace carve::sim {

Pools& pools() {
  static auto* all = new Pools;
  return *all;
}

CUmemoryPool Pools::make(unsigned device, bool host) {
  auto* pool = new CUmemPoolHandle_st;
  pool->device = device;
  pool->host = host;
  pool->name = {process().slot, next_number++, process().generation};
  all.insert(pool);
  return pool;
}

CUmemoryPool Pools::standard_of(unsigned device, bool host) {
  CUmemoryPool& pool = host ? standard_host : standard[device];
  if (!pool) {
    pool = make(device, host);
    pool->standard = true;
  }
  return pool;
}

CUmemoryPool Pools::current_of(unsigned device, bool host) {
  const CUmemoryPool chosen = host ? current_host : current[device];
  return chosen ? chosen : standard_of(device, host);
}

namespace {

// Returns a number for a channel that is unique during the life of this process.
uint64_t stream_key(const CUctx_st& c, unsigned channel) { return c.id * max_channels + channel + 1; }

std::shared_ptr<CUctx_st> context_behind(const LastUse& use) {
  const std::lock_guard lock(process().mutex);
  for (const auto& [handle, c] : process().contexts)
    if (c->id == (use.stream - 1) / max_channels) return c;
  return nullptr;
}
unsigned channel_behind(const LastUse& use) { return static_cast<unsigned>((use.stream - 1) % max_channels); }

// Returns whether the work before the position is done. A context that no longer exists has no work.
bool over(const LastUse& use) {
  const auto c = context_behind(use);
  if (!c) return true;
  Device& d = c->own_device();
  const Locked lock(d);
  advance(d, now_ns());
  return complete(d, c->index, channel_behind(use), use.sequence);
}

CUresult take_chunk(CUmemPoolHandle_st& pool, uint64_t bytes) {
  if (pool.most && pool.book.reserved() + bytes > std::max(pool.most, pool_chunk_bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (pool.host) {
    void* p =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    pool.book.add_chunk(reinterpret_cast<uint64_t>(p), bytes);
    return CUDA_SUCCESS;
  }
  if (pool.imported) return CUDA_ERROR_INVALID_VALUE;
  if (pool.handle_types) {
    std::shared_ptr<Shared> segment;
    const auto counted = Shared::Counted::for_the_process;
    if (const CUresult e = Shared::create(pool.device, bytes, counted, nullptr, &segment)) return e;
    const uint64_t base = heap_take_range(bytes);
    if (!base || !heap_attach(base, segment->base(), bytes, false)) {
      if (base) heap_give_range(base, bytes);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool.segments[base] = std::move(segment);
    pool.book.add_chunk(base, bytes);
    return CUDA_SUCCESS;
  }
  if (const CUresult e = take_bytes(pool.device, bytes)) return e;
  const uint64_t base = heap_take_range(bytes);
  if (!base) {
    give_bytes(pool.device, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pool.book.add_chunk(base, bytes);
  return CUDA_SUCCESS;
}

void give_chunk(CUmemPoolHandle_st& pool, const PoolBook::Chunk& chunk) {
  if (pool.host) {
    munmap(reinterpret_cast<void*>(chunk.base), chunk.bytes);
    return;
  }
  if (const auto segment = pool.segments.find(chunk.base); segment != pool.segments.end()) {
    heap_detach(chunk.base, chunk.bytes);
    heap_give_range(chunk.base, chunk.bytes);
    pool.segments.erase(segment);
    return;
  }
  heap_give_range(chunk.base, chunk.bytes);
  give_bytes(pool.device, chunk.bytes);
}

// Finds free memory in the pool for work of this channel. *wait receives the work that must end first.
// Follows the order that the driver documents: memory that is free for this stream, then more memory, then
// memory that another stream will have freed.
CUresult place(CUmemPoolHandle_st& pool, uint64_t bytes, const CUctx_st& c, unsigned channel, uint64_t* base,
               LastUse* wait) {
  const uint64_t own = stream_key(c, channel);
  const auto judge = [&](const LastUse& use) {
    if (use.stream == own) return Reuse::now;
    if (pool.follow_events) {
      const auto& waits = pools().waits[own];
      const auto waited = waits.find(use.stream);
      if (waited != waits.end() && waited->second >= use.sequence) return Reuse::now;
    }
    return pool.opportunistic && over(use) ? Reuse::now : Reuse::never;
  };
  auto at = pool.book.take(bytes, judge, wait);
  CUresult refused = CUDA_ERROR_OUT_OF_MEMORY;
  if (!at) {
    refused = take_chunk(pool, PoolBook::chunk_for(bytes));
    if (refused == CUDA_SUCCESS) at = pool.book.take(bytes, judge, wait);
  }
  if (!at && pool.internal_dependencies)
    at = pool.book.take(
        bytes, [](const LastUse&) { return Reuse::after_waiting; }, wait);
  if (!at) return refused;
  *base = *at;
  return CUDA_SUCCESS;
}

// Releases unused chunks while the pool reserves more than `keep` bytes.
void shrink(CUmemPoolHandle_st& pool, uint64_t keep) {
  while (pool.book.reserved() > keep) {
    const auto chunk = pool.book.release(UINT64_MAX, over);
    if (!chunk) return;
    give_chunk(pool, *chunk);
  }
}

// Captures an allocation as a node that takes memory from the graphs' own pool.
CUresult capture_allocation(CUstream_st& stream, const std::shared_ptr<CUctx_st>& c, CUdeviceptr* out,
                            size_t bytes, CUmemoryPool pool) {
  CUgraphNodeParams p = {};
  p.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  p.alloc.bytesize = bytes;
  p.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  {
    const std::lock_guard lock(pools().mutex);
    if (!pool) pool = pools().current_of(c->device, false);
    if (!pools().known(pool)) return CUDA_ERROR_INVALID_VALUE;
    if (pool->host) return CUDA_ERROR_NOT_SUPPORTED;
    p.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, visible_of(pool->device)};
  }
  const CUresult e = capture(stream, c, &p);
  if (e == CUDA_SUCCESS) *out = p.alloc.dptr;
  return e;
}

CUresult allocate(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream handle) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (capturing(*stream)) return capture_allocation(*stream, c, out, bytes, pool);
  if (bytes > 1ull << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  LastUse wait;
  uint64_t base = 0;
  {
    const std::lock_guard lock(pools().mutex);
    if (!pool) pool = pools().current_of(c->device, false);
    if (!pools().known(pool)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult e = place(*pool, bytes, *c, stream->channel, &base, &wait)) return e;
    heap_record({.base = base, .bytes = bytes, .device = pool->device, .kind = Memory::pool, .pool = pool});
  }
  *out = base;
  const auto from = wait.stream ? context_behind(wait) : nullptr;
  if (!from) return CUDA_SUCCESS;
  Step step;
  step.op.kind = OpKind::mark;
  const Place freed{from, channel_behind(wait), wait.sequence};
  return submit_after(c, stream->channel, {&freed, 1}, std::move(step), nullptr);
}

CUresult free_in_stream(CUdeviceptr pointer, CUstream handle) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  if (capturing(*stream)) {
    CUgraphNodeParams p = {};
    p.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    p.free.dptr = pointer;
    return capture(*stream, c, &p);
  }
  HeapRecord a;
  if (!heap_find(pointer, &a) || a.base != pointer) return CUDA_ERROR_INVALID_VALUE;
  Op op = {};
  op.kind = OpKind::mark;
  uint64_t sequence = 0;
  if (a.kind == Memory::device) {  // Memory of cuMemAlloc is released when the stream reaches the free.
    Effect effect;
    effect.run = [pointer](uint64_t) { heap_free(pointer, Memory::device, Memory::device); };
    return submit(*c, stream->channel, op, std::move(effect), &sequence);
  }
  if (a.kind == Memory::graph) {
    if (const CUresult e = submit(*c, stream->channel, op, &sequence)) return e;
    return graph_memory_free(pointer, {c, stream->channel, sequence});
  }
  if (a.kind != Memory::pool) return CUDA_ERROR_INVALID_VALUE;
  if (a.pool->imported) {  // Its pages must stay while work uses them.
    Effect effect;
    effect.run = [pointer](uint64_t) { free_pooled(pointer, {}); };
    return submit(*c, stream->channel, op, std::move(effect), &sequence);
  }
  if (const CUresult e = submit(*c, stream->channel, op, &sequence)) return e;
  return free_pooled(pointer, {stream_key(*c, stream->channel), sequence});
}

}  // namespace

CUresult free_pooled(CUdeviceptr pointer, const LastUse& last) {
  const std::lock_guard lock(pools().mutex);
  HeapRecord a;
  if (!heap_strike(pointer, Memory::pool, &a)) return CUDA_ERROR_INVALID_VALUE;
  if (const auto imported = a.pool->pointers.find(pointer); imported != a.pool->pointers.end()) {
    import_detach(imported->second);
    a.pool->pointers.erase(imported);
  } else {
    a.pool->book.free(pointer, last);
  }
  return CUDA_SUCCESS;
}

void trim(CUmemPoolHandle_st& pool, uint64_t keep) { shrink(pool, keep); }

void release_unused(unsigned device) {
  Pools& p = pools();
  const std::lock_guard lock(p.mutex);
  std::erase_if(p.all, [&](CUmemoryPool pool) {
    if (pool->device != device && !pool->host) return false;
    shrink(*pool, pool->destroyed ? 0 : pool->threshold);
    if (!pool->destroyed || pool->book.reserved() || !pool->pointers.empty()) return false;
    delete pool;
    return true;
  });
}

void note_wait(CUctx_st& c, unsigned channel, const Recording& r) {
  const auto from = r.context.lock();
  if (!from) return;
  const std::lock_guard lock(pools().mutex);
  uint64_t& upto = pools().waits[stream_key(c, channel)][stream_key(*from, r.channel)];
  upto = std::max(upto, r.sequence);
}

}  // namespace carve::sim

EXPORT CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream s) {
  return allocate(out, bytes, nullptr, s);
}
EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream s) {
  return allocate(out, bytes, nullptr, per_thread(s));
}
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream s) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(s, &c, &stream)) return e;
  return pool ? allocate(out, bytes, pool, s) : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream s) {
  return cuMemAllocFromPoolAsync(out, bytes, pool, per_thread(s));
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream s) { return free_in_stream(pointer, s); }
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream s) {
  return free_in_stream(pointer, per_thread(s));
}
