// Records the charge of each live allocation (or context) of this process, by its pointer or handle.
//
// A free must stay fast, and a list would cost 25 us at 10,000 live allocations. This is a hash table with
// open addressing over mmap'd pages, with 32 bytes a record. It has 16 shards, each with a spin lock that is
// held for a few dozen nanoseconds and never during a call of the driver. put() and take() cost 15 ns at any
// number of records. A shard that is nearly empty after many frees halves itself. The table takes 43 to 85
// bytes per live record after growth, and always less than 256. The table is not shared with other processes.
// It does not use malloc, because the program may be inside its own.
//
// The object is in memory that a forked child finds zeroed (process_page.h), and zero is an empty table with
// free locks. The pages that it points to do not exist in the child.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_annotations.h"

namespace carve::guest {

// The bytes that one call charged, and the report's lane that must release them.
struct Charge {
  uint64_t bytes = 0;
  uint16_t device = 0;  // Index in Control::devices.
  uint16_t lane = 0;

  friend bool operator==(const Charge&, const Charge&) = default;
};

struct Record {
  uint64_t key = 0;      // Device pointer or handle; never 0.
  uint64_t context = 0;  // The context whose end releases it.
  uint64_t bytes = 0;    // This and the next two fields are its Charge.
  uint16_t device = 0;
  uint16_t lane = 0;
  uint32_t uses = 1;  // For a context: cuCtxAttach adds one, cuCtxDetach subtracts one.

  Charge charge() const { return {bytes, device, lane}; }
};
static_assert(sizeof(Record) == 32);

inline Record record_of(uint64_t key, uint64_t context, Charge c) {
  return {key, context, c.bytes, c.device, c.lane, 1};
}

// A lock that never sleeps in the kernel: held for nanoseconds, and free after a fork (see above).
class CAPABILITY("spin lock") SpinLock {
 public:
  bool try_lock() TRY_ACQUIRE(true) {
    return word_.load(std::memory_order_relaxed) == 0 && word_.exchange(1, std::memory_order_acquire) == 0;
  }
  void lock() ACQUIRE();
  // Does nothing at run time. Used in a lambda whose caller holds the lock, which the thread safety analysis
  // cannot know.
  void assume_held() const ASSERT_CAPABILITY(this) {}
  void unlock() RELEASE() { word_.store(0, std::memory_order_release); }

 private:
  std::atomic<uint32_t> word_{0};
};

class Records {
 public:
  // Adds a record. Returns false if there is no memory for it. An earlier record of the same key is copied to
  // `previous` (whose key is 0 if there was none): its allocation ended without a call that this library saw.
  bool put(const Record& record, Record* previous);

  // Removes and returns the record. Returns false if there is none.
  bool take(uint64_t key, Record* record);

  // Copies the record. Returns false if there is none.
  bool find(uint64_t key, Record* record);

  // Adds `by` to the record's uses and copies it; at 0 the record is removed. Returns false if there is none.
  bool use(uint64_t key, int by, Record* record);

  // Replaces the record's charge. Returns false if there is none.
  bool recharge(uint64_t key, const Charge& charge);

  // Removes the records of one context and calls `gone(record)` for each. `gone` must not call this table.
  template <class Gone>
  void take_all_of(uint64_t context, Gone gone) {
    take_some_of(context, [&](const Record& r) { return gone(r), true; });
  }

  // Does the same until `gone` returns false.
  template <class Gone>
  void take_some_of(uint64_t context, Gone gone) {
    bool go_on = true;
    for (Shard& shard : shards_) {
      if (!go_on) return;
      shard.lock.lock();
      // Closing a gap only moves records towards the front, and the freed slot is checked again.
      for (uint32_t i = 0; i < shard.capacity && go_on;) {
        const Record record = shard.slots[i];
        if (record.key == 0 || record.context != context) {
          ++i;
          continue;
        }
        erase(shard, i);
        go_on = gone(record);
      }
      while (is_sparse(shard) && resize(shard, shard.capacity / 2)) {}
      shard.lock.unlock();
    }
  }

 private:
  struct alignas(64) Shard {
    SpinLock lock;
    uint32_t used GUARDED_BY(lock);
    uint32_t capacity GUARDED_BY(lock);  // A power of two, or 0.
    Record* slots GUARDED_BY(lock) PT_GUARDED_BY(lock);
  };
  static constexpr unsigned shard_count = 16;
  static constexpr uint32_t first_capacity = 128;

  static bool is_sparse(const Shard& shard) REQUIRES(shard.lock) {
    return shard.capacity > first_capacity && shard.used < shard.capacity / 8;
  }
  static bool resize(Shard& shard, uint32_t capacity) REQUIRES(shard.lock);
  static Record* at(Shard& shard, uint64_t key) REQUIRES(shard.lock);  // Null if there is none.
  static void erase(Shard& shard, uint32_t free_block) REQUIRES(shard.lock);

  Shard shards_[shard_count];
};

}  // namespace carve::guest
