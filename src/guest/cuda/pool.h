// Memory that the driver reserves in lumps and hands out in pieces: the pools of cuMemAllocAsync, and the one
// that the graphs of a device share. What counts against the quota is what a pool has *reserved* (multiples
// of 32 MiB), not what was asked of it: a pool keeps what was freed, up to its release threshold, and gives
// it back at a synchronisation, at a trim, or when it is destroyed. The driver tells the figure
// (CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), so nothing is guessed.
//
// Growth. Before a call that may make a pool grow, its charge is raised by the most that the call can add:
// what was asked, rounded up to the step of 32 MiB. Afterwards the charge is set to what the driver says. So
// the device is never held beyond the quota, not for a moment.
//
// Where that bound is refused, in this order, until the call may go:
//   1. settle: ask all pools of the device what they hold; a synchronisation may have shrunk them
//   2. trim: give back what pools keep unused, as a driver short of memory does
//   3. go without, if something of that size was freed in the same stream (or before a synchronisation) and
//   not
//      handed out since: then the pool need not grow, and churn at the quota fails nobody by mistake. That
//      much is unused in all is not enough: it may be in pieces too small, and the pool would grow. If it
//      grew all the same the allocation is undone and refused.
// An ordinary allocation that does not fit takes steps 1 and 2 before it says so.
//
// Shrinking is found at each synchronisation (streams, events, contexts), free, trim, change of an attribute,
// and whenever memory information is asked: one question to the driver per pool, about 50 ns, and nothing
// where no pool holds anything: one load.
//
// A pool's lock is held over the driver's call, so that growth is measured and charged in one piece; the
// others are only tried, never waited for, so there is no order of locks.
#pragma once

#include "guest/cuda/descriptors.h"
#include "guest/cuda/device.h"

namespace carve::guest {

inline constexpr Bytes pool_step = 32_MiB;

// What stands in a Record's device for a piece of a pool; the pool's index stands in `uses`.
inline constexpr uint16_t in_pool = 0xffff;

// The pool of that handle, entered at its first sight. `charged` false: imported from another process, or
// host memory. Null where max_pools are known already.
Pool* pool_of(Process& p, CUmemoryPool handle, unsigned device, bool charged = true);
Pool* find_pool(Process& p, CUmemoryPool handle);
Pool* graph_pool_of(Process& p, CUdevice ordinal, unsigned device);

// What the driver says that the pool holds, and whether so much of it is unused. False where it says nothing.
bool ask_reserved(const Pool& pool, Bytes* bytes);
bool has_unused(const Pool& pool, Bytes asked);

// Whether a known hole would do for an allocation in this stream; what an allocation took out of the holes.
// The caller holds the lock.
bool has_free_block(const Pool& pool, Bytes asked, uint64_t stream);
void add_free_block(Pool& pool, Pool::FreeBlock fresh);
void use_free_block(Pool& pool, uint64_t at, Bytes bytes);

// Sets the charge to what the pool holds. The caller holds the lock. False: nothing was given back.
bool settle(Process& p, Pool& pool);

// The destroyed pool's handle is free to be used again; what it still holds goes with its last piece.
void forget(Process& p, Pool& pool);

// Steps 1 and 2 above for all pools of a device (or of all devices) but `held`, whose lock the caller has.
// Whether anything was given back.
inline constexpr unsigned all_devices = ~0u;
bool settle_pools(Process& p, unsigned device, const Pool* held = nullptr);
bool trim_pools(Process& p, unsigned device, const Pool* held = nullptr);

// Frees a piece of a pool in `stream`; any_stream: the call waits, so that everybody may have its place then.
template <class Free>
CUresult suballocation_freed(Process& p, const Record& record, uint64_t stream, Free free) {
  Pool& pool = p.pool[record.uses % max_pools];
  // From the driver's answer on, another thread may be given the place: that must not become known before the
  // hole is. So a free in a stream happens under the lock. One that waits, perhaps long, does not; its hole
  // counts only if nobody was given anything meanwhile.
  const bool waits = stream == any_stream;
  const uint32_t handed = pool.handed.load(std::memory_order_acquire);
  if (!waits) pool.lock.lock();
  const CUresult result = free();
  if (waits) pool.lock.lock();
  if (result == CUDA_SUCCESS) {
    pool.live.fetch_sub(1, std::memory_order_acq_rel);
    if (pool.handed.load(std::memory_order_relaxed) == handed || !waits)
      add_free_block(pool, {record.key, record.bytes, stream});
    if (waits) settle(p, pool);
  }
  pool.lock.unlock();
  return result;
}

// After something that lets pools shrink. `stream`: what was waited for, as cuMemFreeAsync named it.
void synchronized_slowly(Process& p, uint64_t stream);
inline void synchronized(uint64_t stream = any_stream) {
  if (Process* p = attached(); p != nullptr && p->pool_count.load(std::memory_order_relaxed) != 0)
    synchronized_slowly(*p, stream);
}
inline void synchronized(CUstream stream) { synchronized(reinterpret_cast<uint64_t>(stream)); }

// Reserves, taking back what closed descriptors held, and from the process's own pools, before it gives up.
inline bool granted(Process& p, unsigned device, Reservation& reservation) {
  if (reservation || (settle_descriptors(p) && reservation.again())) return true;
  if (p.pool_count.load(std::memory_order_relaxed) == 0) return false;
  return (settle_pools(p, device) && reservation.again()) || (trim_pools(p, device) && reservation.again());
}

// Makes `call`, which may let the pool grow by `asked`; `need_not(pool)`: it would not. `undo` takes the
// successful call back and says so; what cannot be undone (a launch) is counted as it is.
template <class Call, class Undo, class NeedNot>
CUresult growing(Process& p, Pool& pool, Bytes asked, NeedNot need_not, Call call, Undo undo) {
  pool.lock.lock();
  const auto covered = [&] {
    const auto bound = plus(pool.charge_bytes(), rounded_up(asked, pool_step));
    return bound && recharge(p, pool.charge, *bound);
  };
  const unsigned device = pool.charge.device;
  const bool goes = covered() || (settle(p, pool) && covered()) || (settle_descriptors(p) && covered()) ||
                    (settle_pools(p, device, &pool) && covered()) ||
                    (trim_pools(p, device, &pool) && covered()) || need_not(pool);
  CUresult result = goes ? call() : CUDA_ERROR_OUT_OF_MEMORY;
  if (goes) {
    Bytes holds;
    if (ask_reserved(pool, &holds) && !recharge(p, pool.charge, holds)) {
      if (result == CUDA_SUCCESS && undo()) result = CUDA_ERROR_OUT_OF_MEMORY;
      if (ask_reserved(pool, &holds)) recharge_truth(p, pool.charge, holds);
    }
  }
  pool.lock.unlock();
  return result;
}

}  // namespace carve::guest
