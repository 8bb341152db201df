#include "guest/memory/memory_pool.h"

namespace carve::guest {
namespace {

using Kind = Pool::Kind;

bool has(const Pool& pool, Kind kind, uint64_t handle) {
  return pool.kind.load(std::memory_order_acquire) == kind &&
         pool.handle.load(std::memory_order_relaxed) == handle;
}

Pool* find(Process& p, bool (*is)(const Pool&, uint64_t), uint64_t handle) {
  const uint32_t count = p.pool_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < max_pools; ++i)
    if (is(p.pool[i], handle)) return &p.pool[i];
  return nullptr;
}

bool is_of_stream(const Pool& pool, uint64_t handle) {
  return has(pool, Kind::charged, handle) || has(pool, Kind::not_charged, handle);
}
bool is_of_graphs(const Pool& pool, uint64_t handle) { return has(pool, Kind::graph, handle); }

// Enters a pool that find() did not find. The lock of the last element, which is never used for a pool,
// admits one thread at a time.
Pool* enter(Process& p, bool (*is)(const Pool&, uint64_t), uint64_t handle, Kind kind, unsigned device) {
  if (Pool* known = find(p, is, handle)) return known;
  SpinLock& lock = p.pool[max_pools - 1].lock;
  lock.lock();
  Pool* pool = find(p, is, handle);
  for (uint32_t i = 0; i < max_pools - 1 && pool == nullptr; ++i) {
    if (p.pool[i].kind.load(std::memory_order_acquire) != Kind::none) continue;
    pool = &p.pool[i];
    pool->handle.store(handle, std::memory_order_relaxed);
    pool->live.store(0, std::memory_order_relaxed);
    pool->device.store(static_cast<uint16_t>(device), std::memory_order_relaxed);
    pool->lock.lock();
    for (Pool::FreeBlock& h : pool->free_block) h = {};
    pool->charge = {0, static_cast<uint16_t>(device), 0};
    pool->block_name.store(0, std::memory_order_relaxed);
    pool->block = pool->released = 0;
    pool->lock.unlock();
    pool->kind.store(kind, std::memory_order_release);
    if (p.pool_count.load(std::memory_order_relaxed) <= i)
      p.pool_count.store(i + 1, std::memory_order_release);
  }
  lock.unlock();
  return pool;
}

// Calls `act(pool)` with its lock held for each pool that is not busy. Returns whether any of them released
// memory.
template <class Act>
bool each(Process& p, unsigned device, const Pool* held, Act act) {
  bool any = false;
  const uint32_t count = p.pool_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < max_pools; ++i) {
    Pool& pool = p.pool[i];
    const Kind kind = pool.kind.load(std::memory_order_acquire);
    const bool is_imported = pool.block_name.load(std::memory_order_relaxed) != 0;
    if (kind == Kind::none || (kind == Kind::not_charged && !is_imported)) continue;
    if (device != all_devices && pool.device.load(std::memory_order_relaxed) != device) continue;
    if (&pool == held) {
      any |= act(pool);
    } else if (pool.lock.try_lock()) {
      any |= act(pool);
      pool.lock.unlock();
    }
  }
  return any;
}

// It is unknown which free blocks the released memory contained, so all are forgotten.
bool lower(Process& p, Pool& pool, Bytes to) REQUIRES(pool.lock) {
  if (pool.block != 0) keep_in_block(p, static_cast<unsigned>(pool.block - 1), to);
  const Bytes before = charged(p, pool);
  pool.released = is_held_by_others(p, pool) ? minus(before, to).count : 0;
  if (pool.released != 0) return false;
  if (to >= before) return false;
  for (Pool::FreeBlock& h : pool.free_block) h = {};
  return recharge(p, pool, to);
}

// Returns the part of a charge of `all` bytes that is not in the pool's block.
Bytes outside_block(Process& p, Pool& pool, uint64_t all) REQUIRES(pool.lock) {
  return minus({all}, minus(charged(p, pool), {pool.charge.bytes}));
}

}  // namespace

Pool* find_pool(Process& p, CUmemoryPool handle) {
  return find(p, is_of_stream, reinterpret_cast<uint64_t>(handle));
}

Pool* pool_of(Process& p, CUmemoryPool handle, unsigned device, bool charged) {
  return enter(p, is_of_stream, reinterpret_cast<uint64_t>(handle),
               charged ? Kind::charged : Kind::not_charged, device);
}

Pool* graph_pool_of(Process& p, CUdevice ordinal, unsigned device) {
  return enter(p, is_of_graphs, static_cast<uint64_t>(ordinal) + 1, Kind::graph, device);
}

namespace {

CUresult ask_for(const Pool& pool, CUgraphMem_attribute of_graphs, CUmemPool_attribute of_pools,
                 Bytes* value) {
  cuuint64_t bytes = 0;
  const uint64_t handle = pool.handle.load(std::memory_order_relaxed);
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (pool.kind.load(std::memory_order_relaxed) == Kind::graph) {
    result = driver<&cuDeviceGetGraphMemAttribute>(static_cast<CUdevice>(handle - 1), of_graphs, &bytes);
  } else if (handle != 0) {
    result = driver<&cuMemPoolGetAttribute>(reinterpret_cast<CUmemoryPool>(handle), of_pools, &bytes);
  }
  *value = {bytes};
  return result;
}

}  // namespace

bool ask_reserved(const Pool& pool, Bytes* bytes) {
  return ask_for(pool, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, bytes) ==
         CUDA_SUCCESS;
}

bool has_unused(const Pool& pool, Bytes asked) {
  Bytes used, reserved;
  return ask_reserved(pool, &reserved) &&
         ask_for(pool, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) ==
             CUDA_SUCCESS &&
         minus(reserved, used) >= asked;
}

Bytes charged(Process& p, const Pool& pool) {
  return {pool.charge.bytes +
          (pool.block != 0 ? bytes_of_block(p, static_cast<unsigned>(pool.block - 1)) : 0)};
}

bool recharge(Process& p, Pool& pool, Bytes reserved) {
  const uint64_t all = reserved.count + pool.released;
  if (!recharge(p, pool.charge, outside_block(p, pool, all))) return false;
  return true;
}

void recharge_truth(Process& p, Pool& pool, Bytes reserved) {
  recharge_truth(p, pool.charge, outside_block(p, pool, reserved.count + pool.released));
}

bool settle(Process& p, Pool& pool) {
  const Kind kind = pool.kind.load(std::memory_order_relaxed);
  if (kind == Kind::orphan || kind == Kind::not_charged) {
    if (pool.live.load(std::memory_order_acquire) != 0) return false;
    // The bytes that other processes may hold stay in the block. No other process holds the rest.
    const bool gave = recharge(p, pool.charge, 0_B);
    leave_block(p, pool);
    if (kind == Kind::orphan) pool.kind.store(Kind::none, std::memory_order_release);
    return gave;
  }
  if (charged(p, pool).count == 0) return false;
  Bytes reserved;
  return ask_reserved(pool, &reserved) && lower(p, pool, reserved);
}

void forget(Process& p, Pool& pool) {
  pool.handle.store(0, std::memory_order_relaxed);
  pool.kind.store(Kind::orphan, std::memory_order_release);
  settle(p, pool);
}

bool settle_pools(Process& p, unsigned device, const Pool* held) {
  return each(p, device, held, [&](Pool& pool) {
    pool.lock.assume_held();
    return settle(p, pool);
  });
}

bool trim_pools(Process& p, unsigned device, const Pool* held) {
  return each(p, device, held, [&](Pool& pool) {
    pool.lock.assume_held();
    if (charged(p, pool).count == 0) return false;
    const uint64_t handle = pool.handle.load(std::memory_order_relaxed);
    if (pool.kind.load(std::memory_order_relaxed) == Kind::graph) {
      driver<&cuDeviceGraphMemTrim>(static_cast<CUdevice>(handle - 1));
    } else if (handle != 0) {
      driver<&cuMemPoolTrimTo>(reinterpret_cast<CUmemoryPool>(handle), 0);
    }
    return settle(p, pool);
  });
}

bool has_free_block(const Pool& pool, Bytes asked, uint64_t stream) {
  for (const Pool::FreeBlock& h : pool.free_block)
    if (h.bytes >= asked.count && (h.stream == any_stream || h.stream == stream)) return true;
  return false;
}

void use_free_block(Pool& pool, uint64_t at, Bytes bytes) {
  for (Pool::FreeBlock& h : pool.free_block) {
    if (h.bytes == 0 || at + bytes.count <= h.at || h.at + h.bytes <= at) continue;
    // Suballocations are cut from the beginning of a free block. In all other cases, assuming a smaller free
    // block is safe.
    const uint64_t end = h.at + h.bytes, next = at + bytes.count;
    h = at == h.at && next < end ? Pool::FreeBlock{next, end - next, h.stream} : Pool::FreeBlock{};
  }
}

namespace {

// Merges neighbours into one free block, for the stream that may use both.
bool merge(Pool::FreeBlock& h, const Pool::FreeBlock& fresh) {
  if (h.bytes == 0 || (h.stream != fresh.stream && h.stream != any_stream && fresh.stream != any_stream))
    return false;
  if (h.at + h.bytes != fresh.at && fresh.at + fresh.bytes != h.at) return false;
  h = {std::min(h.at, fresh.at), h.bytes + fresh.bytes, h.stream == any_stream ? fresh.stream : h.stream};
  return true;
}

}  // namespace

void add_free_block(Pool& pool, Pool::FreeBlock fresh) {
  // The merged block may touch another one.
  for (unsigned i = 0; i < std::size(pool.free_block); ++i) {
    if (!merge(pool.free_block[i], fresh)) continue;
    fresh = pool.free_block[i];
    pool.free_block[i] = {};
    i = ~0u;
  }
  Pool::FreeBlock& smallest =
      *std::ranges::min_element(pool.free_block, {}, [](const Pool::FreeBlock& h) { return h.bytes; });
  if (smallest.bytes < fresh.bytes) smallest = fresh;
}

void synchronized_slowly(Process& p, uint64_t stream) {
  each(p, all_devices, nullptr, [&](Pool& pool) {
    pool.lock.assume_held();
    for (Pool::FreeBlock& h : pool.free_block)
      if (stream == any_stream || h.stream == stream) h.stream = any_stream;
    const bool imported = pool.kind.load(std::memory_order_relaxed) == Kind::not_charged;
    return (stream == any_stream || !imported) && settle(p, pool);
  });
}

}  // namespace carve::guest
