// Memory that the driver reserves in chunks and suballocates: the pools of cuMemAllocAsync, and the one pool
// that the graphs of a device share. The quota counts what a pool has *reserved* (multiples of 32 MiB), not
// what was requested of it. A pool keeps freed memory up to its release threshold, and releases it at a
// synchronisation, at a trim, or when it is destroyed. The driver reports the figure
// (CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), so nothing is guessed.
//
// Growth. Before a call that may make a pool grow, its charge is raised by the most that the call can add:
// the requested bytes, rounded up to the step of 32 MiB. Afterwards the charge is set to the driver's figure.
// So the slice never exceeds its quota, not even for a moment.
//
// If the quota refuses that bound, these steps follow in this order until the call may proceed:
//   1. settle: query what all pools of the device hold; a synchronisation may have shrunk them
//   2. trim: release what pools keep unused, as a driver short of memory does
//   3. proceed without the bound, if memory of that size was freed in the same stream (or before a
//      synchronisation) and not given out since. Then the pool need not grow, and repeated frees and
//      allocations at the quota do not fail by mistake. Enough unused memory in total is not sufficient: its
//      free blocks may be too small, and the pool would grow. If the pool grows all the same, the allocation
//      is undone and refused.
// An ordinary allocation that does not fit takes steps 1 and 2 before it is refused.
//
// Shrinking is detected at each synchronisation (streams, events, contexts), free, trim, change of an
// attribute, and whenever memory information is requested. This costs one driver call per pool, about 50 ns,
// or one load if no pool holds memory.
//
// Exported pools. Other processes may hold memory that this process's pool released, and the driver's figure
// for the pool does not count that memory. From the export of a pointer on, the pool's bytes are in a shared
// block (quota/shared_block.h). While another process holds the block, nothing is released: what the pool
// releases is added to `Pool::released` and stays charged. An importer holds the block while it has pointers
// of the pool, and until it has synchronised after the last one's free (shared_pools.cc).
//
// A pool's lock is held during the driver's call, so that growth is measured and charged together. The locks
// of the other pools are only tried, never waited for, so there is no lock order.
#pragma once

#include "guest/launch/launch_clock.h"
#include "guest/linkage/ensure.h"
#include "guest/process/device_lookup.h"
#include "guest/quota/charge.h"
#include "guest/quota/shared_block.h"

namespace carve::guest {

inline constexpr Bytes pool_step = 32_MiB;

// Value of Record::device for a suballocation of a pool; Record::uses is then the pool's index.
inline constexpr uint16_t in_pool = 0xffff;

// Returns the pool of that handle, which is entered on first use. `charged` is false for pools imported from
// another process and for host memory. Returns null if max_pools are already entered.
Pool* pool_of(Process& p, CUmemoryPool handle, unsigned device, bool charged = true);
Pool* find_pool(Process& p, CUmemoryPool handle);
Pool* graph_pool_of(Process& p, CUdevice ordinal, unsigned device);

// ask_reserved() gets the bytes that the pool holds from the driver, and returns false if the driver reports
// none. has_unused() returns whether at least that much of it is unused.
bool ask_reserved(const Pool& pool, Bytes* bytes);
bool has_unused(const Pool& pool, Bytes asked);

// has_free_block() returns whether a known free block is large enough for an allocation in this stream. The
// others record what was freed and allocated.
bool has_free_block(const Pool& pool, Bytes asked, uint64_t stream) REQUIRES(pool.lock);
void add_free_block(Pool& pool, Pool::FreeBlock fresh) REQUIRES(pool.lock);
void use_free_block(Pool& pool, uint64_t at, Bytes bytes) REQUIRES(pool.lock);

// Returns the bytes charged for a pool, including its shared block.
Bytes charged(Process& p, const Pool& pool) REQUIRES(pool.lock);

// Adjusts the charge of a pool that has this many bytes. Returns false and changes nothing if the quota
// forbids the growth. recharge_truth() charges the growth even above the quota.
bool recharge(Process& p, Pool& pool, Bytes reserved) REQUIRES(pool.lock);
void recharge_truth(Process& p, Pool& pool, Bytes reserved) REQUIRES(pool.lock);

// Returns whether other processes, or imports of the pool in this process, may hold memory of the pool
// (shared_pools.cc).
bool is_held_by_others(Process& p, const Pool& pool) REQUIRES(pool.lock);
// Ends this process's use of the pool's block.
void leave_block(Process& p, Pool& pool) REQUIRES(pool.lock);

// Sets the charge to what the pool holds. Returns false if nothing was released.
bool settle(Process& p, Pool& pool) REQUIRES(pool.lock);

// Forgets a destroyed pool, whose handle may be reused. Its remaining memory is released with its last
// suballocation.
void forget(Process& p, Pool& pool) REQUIRES(pool.lock);

// Takes steps 1 and 2 above for all pools of a device (or of all devices) except `held`, whose lock the
// caller has. Returns whether any memory was released.
inline constexpr unsigned all_devices = ~0u;
bool settle_pools(Process& p, unsigned device, const Pool* held = nullptr);
bool trim_pools(Process& p, unsigned device, const Pool* held = nullptr);

// Records that a suballocation has ended. If more ends than suballocations are counted, the pool stays
// charged.
inline void suballocation_ended(Pool& pool) REQUIRES(pool.lock) {
  if (ensure(pool.live.load(std::memory_order_relaxed) != 0))
    pool.live.fetch_sub(1, std::memory_order_acq_rel);
}

// Frees a suballocation in `stream`. any_stream means that the call waits, so every stream may use its memory
// afterwards.
template <class Free>
CUresult suballocation_freed(Process& p, const Record& record, uint64_t stream, Free free) {
  if (!ensure(record.uses < max_pools)) return free();
  Pool& pool = p.pool[record.uses];
  // Once the driver has returned, another thread may get the memory, and the free block must be known before
  // that. So a free in a stream happens under the lock.
  if (stream != any_stream) {
    pool.lock.lock();
    const CUresult result = free();
    if (result == CUDA_SUCCESS) {
      suballocation_ended(pool);
      add_free_block(pool, {record.key, record.bytes, stream});
    }
    pool.lock.unlock();
    return result;
  }
  // A free that may wait for a long time does not hold the lock. Its free block counts only if no memory was
  // given out in the meantime.
  const uint32_t handed = pool.handed.load(std::memory_order_acquire);
  const CUresult result = free();
  pool.lock.lock();
  if (result == CUDA_SUCCESS) {
    suballocation_ended(pool);
    if (pool.handed.load(std::memory_order_relaxed) == handed)
      add_free_block(pool, {record.key, record.bytes, stream});
    settle(p, pool);
  }
  pool.lock.unlock();
  return result;
}

// Called after a call that lets pools shrink. `stream` is the stream that the call waited for, as
// cuMemFreeAsync named it.
void synchronized_slowly(Process& p, uint64_t stream);
inline void synchronized(uint64_t stream = any_stream) {
  if (Process* p = attached(); p != nullptr && p->pool_count.load(std::memory_order_relaxed) != 0)
    synchronized_slowly(*p, stream);
}
inline void synchronized(CUstream stream) { synchronized(reinterpret_cast<uint64_t>(stream)); }

// Makes a reservation. Before refusing it, releases exported memory that no process holds and the unused
// memory of the process's own pools.
inline bool granted(Process& p, unsigned device, Reservation& reservation) {
  if (reservation || (settle_shared(p, device) && reservation.again())) return true;
  if (p.pool_count.load(std::memory_order_relaxed) == 0) return false;
  return (settle_pools(p, device) && reservation.again()) || (trim_pools(p, device) && reservation.again());
}

// Returns the refusal of a call that would exceed the quota, and records its time for the agent.
inline CUresult refused_by_quota(Process& p) {
  p.report->quota_refused_ns.store(monotonic_ns(), std::memory_order_relaxed);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Makes `call`, which may let the pool grow by `asked`. `need_not(pool)` returns whether it need not grow.
// `undo` reverts the successful call and returns true; a call that cannot be undone (a launch) is counted as
// it is. All three are called with the pool's lock held.
template <class Call, class Undo, class NeedNot>
CUresult growing(Process& p, Pool& pool, Bytes asked, NeedNot need_not, Call call, Undo undo) {
  pool.lock.lock();
  if (pool.block != 0) settle(p, pool);  // Settle what it has released so far.
  const auto covered = [&] {
    pool.lock.assume_held();
    const auto bound = plus(minus(charged(p, pool), {pool.released}), rounded_up(asked, pool_step));
    return bound && recharge(p, pool, *bound);
  };
  const unsigned device = pool.charge.device;
  const bool goes = covered() || (settle(p, pool) && covered()) || (settle_shared(p, device) && covered()) ||
                    (settle_pools(p, device, &pool) && covered()) ||
                    (trim_pools(p, device, &pool) && covered()) || need_not(pool);
  CUresult result = goes ? call() : refused_by_quota(p);
  if (goes) {
    Bytes holds;
    if (ask_reserved(pool, &holds) && !recharge(p, pool, holds)) {
      if (result == CUDA_SUCCESS && undo()) result = refused_by_quota(p);
      if (ask_reserved(pool, &holds)) recharge_truth(p, pool, holds);
    }
  }
  pool.lock.unlock();
  return result;
}

}  // namespace carve::guest
