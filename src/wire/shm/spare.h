// Spare bytes: bytes that a lane has charged but no allocation uses.
//
// Threads that allocate and free at the same time change one budget word, whose cache line moves from
// processor to processor. This takes 150 ns for each change. A lane that met another writer therefore keeps
// freed bytes as spare bytes, and its next allocations use them without a change of the budget word. Spare
// bytes are in a separate word (Spare::word), where all processes of the slice can see them:
//
// * The bytes in use are the budget word's, less all spare and withdrawn bytes (in_use() in budget.h).
// * A process that needs bytes that others keep spare *withdraws* them: one exchange moves them from `spare`
//   to `withdrawn`. They no longer count against the limit, although the budget word still contains them.
// * A change of the lane withdraws its own spare bytes first, and its exchange of the budget word releases
//   all that was withdrawn from it. The withdrawn amount belongs to the change, like `from` and `to`
//   (Spare::returned). So a kill leaves withdrawn bytes released or withdrawn, and the total of a dead
//   process's lane contains them in any case.
//
// Only the lane's writer adds and takes spare bytes; any process of the slice may withdraw them.
#pragma once

#include "wire/shm/layout.h"

namespace carve::shm {

// The value of Spare::word. All amounts are multiples of 512 bytes. `withdrawn` counts all units that were
// ever withdrawn, modulo 2^24. Each exchange increments the version, so that a reader notices if bytes were
// taken and added in the meantime.
struct SpareWord {
  uint64_t value = 0;

  static constexpr uint64_t unit = 512, mask = (1 << 24) - 1;
  constexpr uint64_t spare() const { return (value & mask) * unit; }
  constexpr uint32_t withdrawn() const { return static_cast<uint32_t>(value >> 24 & mask); }
  constexpr uint64_t version() const { return value >> 48; }

  constexpr SpareWord with(uint64_t spare, uint64_t withdrawn) const {
    return {(version() + 1) << 48 | (withdrawn & mask) << 24 | spare / unit};
  }
};

// The most that a lane keeps.
inline constexpr uint64_t max_spare = uint64_t{64} << 20;

// Returns the bytes that were withdrawn between two values of the counter.
constexpr uint64_t withdrawn_between(uint32_t from, uint32_t to) {
  return ((to - from) & SpareWord::mask) * SpareWord::unit;
}

// Announces that lanes of the process slot may have spare bytes on the device, until reclaim() of the slot.
inline void mark_spare(Charges& charges, unsigned device, unsigned process) {
  charges.spare_slots[device][process / 64].fetch_or(uint64_t{1} << process % 64);
}
inline bool may_have_spare(const Charges& charges, unsigned device, unsigned process) {
  return (charges.spare_slots[device][process / 64].load(std::memory_order_relaxed) >> process % 64 & 1) != 0;
}

// Adds bytes that an allocation released. Returns false and changes nothing if the lane would keep too much,
// or if the lane has not yet returned all withdrawn bytes (`returned` is the number after its last change).
inline bool add_spare(Spare& lane, uint64_t bytes, uint32_t returned) {
  SpareWord now{lane.word.load(std::memory_order_relaxed)};
  do {
    if (bytes % SpareWord::unit != 0 || bytes > max_spare || now.spare() > max_spare - bytes ||
        now.withdrawn() != returned)
      return false;
  } while (!lane.word.compare_exchange_weak(now.value, now.with(now.spare() + bytes, now.withdrawn()).value));
  return true;
}

// Takes spare bytes for an allocation. Returns false and changes nothing if the lane has fewer.
inline bool take_spare(Spare& lane, uint64_t bytes) {
  SpareWord now{lane.word.load(std::memory_order_relaxed)};
  do {
    if (bytes % SpareWord::unit != 0 || now.spare() < bytes) return false;
  } while (!lane.word.compare_exchange_weak(now.value, now.with(now.spare() - bytes, now.withdrawn()).value));
  return true;
}

// Withdraws all spare bytes of the lane. Returns the number of bytes withdrawn so far.
inline uint32_t withdraw_spare(Spare& lane) {
  SpareWord now{lane.word.load(std::memory_order_acquire)};
  SpareWord next = now;
  do {
    if (now.spare() == 0) return now.withdrawn();
    next = now.with(0, now.withdrawn() + now.spare() / SpareWord::unit);
  } while (!lane.word.compare_exchange_weak(now.value, next.value));
  return next.withdrawn();
}

// Ends the announcement. Requires that the process is dead and its lanes hold nothing. Everything counts as
// returned for the next process in the slot, as for lanes that never had spare bytes.
template <class Stop>
void unmark_spare(Charges& charges, unsigned device, unsigned process, Stop stop) {
  if (process >= max_processes || !may_have_spare(charges, device, process)) return;
  for (Spare& lane : charges.process[process].spare[device]) {
    const uint32_t all = withdraw_spare(lane);
    for (std::atomic<Spare::Returned>& returned : lane.returned) {
      returned.store({all, all}, std::memory_order_relaxed);
      stop();
    }
  }
  charges.spare_slots[device][process / 64].fetch_and(~(uint64_t{1} << process % 64));
  stop();
}

}  // namespace carve::shm
