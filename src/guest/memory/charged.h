// Charging for calls that allocate and free memory. `charged` reserves the bytes, calls the driver, and then
// keeps or releases the reservation. `released` releases the charge of a freed pointer. Over the quota, a
// call returns the driver's own CUDA_ERROR_OUT_OF_MEMORY.
//
// A pointer's record is removed before the driver frees it, because afterwards another thread may already
// have got the same pointer. A pointer without a record (allocated before the library was loaded, or by a
// call that is not charged) is passed to the driver unchanged.
#pragma once

#include "guest/memory/memory_pool.h"
#include "guest/memory/spill.h"

namespace carve::guest {

// Returns the bytes that cuMemAlloc takes for a request of this size. Up to 1 MiB, it suballocates multiples
// of 512 bytes from blocks of 2 MiB; above that, it takes whole blocks. The agent detects the unused
// rest of a suballocated block and charges it as growth (node/reconcile/growth.h).
constexpr Bytes charge_of(Bytes asked) { return rounded_up(asked, asked <= 1_MiB ? 512_B : 2_MiB); }

// Records what a successful call took. Returns false and charges nothing if there is no memory for the
// record.
inline bool remember(Process& p, Records& records, uint64_t key, CUcontext context,
                     Reservation& reservation) {
  Record previous;
  if (!records.put(record_of(key, reinterpret_cast<uint64_t>(context), reservation.charge()), &previous))
    return false;
  reservation.keep();
  if (previous.key != 0) give_back(p, previous.charge());
  return true;
}

// Called instead of the driver if the quota forbids the allocation.
inline CUresult refused(Process& p, const Current&) { return refused_by_quota(p); }

// `allocate()` is the driver's call, `taken()` the bytes it took, `pointer()` its result. `undo(pointer)`
// frees the memory again.
template <class Allocate, class Taken, class Pointer, class Undo, class Otherwise = decltype(&refused)>
CUresult charged(Bytes bound, Allocate allocate, Taken taken, Pointer pointer, Undo undo,
                 Otherwise otherwise = refused) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (entered.process == nullptr) return allocate();
  Process& p = *entered.process;
  const Current where = current(p);
  if (where.result != CUDA_SUCCESS) {
    // The driver would fail too. It knows which of several errors takes precedence, and it zeroes the
    // caller's results.
    const CUresult result = allocate();
    if (result != CUDA_SUCCESS) return result;
    if (pointer() != 0) undo(pointer());
    return where.result;
  }
  Reservation reservation(p, where.device, bound);
  if (!granted(p, where.device, reservation)) return otherwise(p, where);
  const CUresult result = allocate();
  if (result != CUDA_SUCCESS || pointer() == 0) return result;
  if (reservation.resize(taken()) && remember(p, p.allocations, pointer(), where.context, reservation))
    return result;
  undo(pointer());
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// `free()` is the driver's call. `stream` is the stream in which it happens, or any_stream if it waits for
// the device.
template <class Free>
CUresult released(CUdeviceptr pointer, Free free, uint64_t stream = any_stream) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  Record record;
  if (entered.process == nullptr || pointer == 0 || !entered.process->allocations.take(pointer, &record))
    return free();
  const Record lifted = lift_spilled(*entered.process, pointer);
  const bool suballocation = record.device == in_pool;
  const CUresult result =
      suballocation ? suballocation_freed(*entered.process, record, stream, free) : free();
  if (result != CUDA_SUCCESS) {
    Record previous;
    entered.process->allocations.put(record, &previous);  // Its slot was just freed.
    put_back(*entered.process, lifted);
  } else if (!suballocation) {
    give_back(*entered.process, record.charge());
    unspill(*entered.process, lifted);
  }
  return result;
}

}  // namespace carve::guest
