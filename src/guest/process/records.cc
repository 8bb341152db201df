#include "guest/process/records.h"

#include <sched.h>
#include <sys/mman.h>

#include "guest/linkage/ensure.h"

namespace carve::guest {
namespace {

// Pointers differ in their middle bits, which the multiplication moves to the top.
uint64_t mixed(uint64_t key) { return key * 0x9e37'79b9'7f4a'7c15; }
unsigned shard_of(uint64_t key) { return mixed(key) >> 60; }
uint32_t home(uint64_t key, uint32_t capacity) {
  return static_cast<uint32_t>(mixed(key) >> 24) & (capacity - 1);
}

}  // namespace

void SpinLock::lock() {
  for (unsigned tries = 0; !try_lock(); ++tries) {
    if (tries < 64) {
      __builtin_ia32_pause();
    } else {
      sched_yield();  // The holder lost the processor.
    }
  }
}

bool Records::resize(Shard& shard, uint32_t capacity) {
  if (!ensure(shard.used < capacity)) return false;  // In a full table, a probe would never end.
  const size_t bytes = size_t{capacity} * sizeof(Record);
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  madvise(pages, bytes, MADV_DONTFORK);
  auto* slots = static_cast<Record*>(pages);
  for (uint32_t i = 0; i < shard.capacity; ++i) {
    if (shard.slots[i].key == 0) continue;
    uint32_t to = home(shard.slots[i].key, capacity);
    while (slots[to].key != 0) to = (to + 1) & (capacity - 1);
    slots[to] = shard.slots[i];
  }
  if (shard.capacity != 0) munmap(shard.slots, size_t{shard.capacity} * sizeof(Record));
  shard.slots = slots;
  shard.capacity = capacity;
  return true;
}

Record* Records::at(Shard& shard, uint64_t key) {
  if (shard.capacity == 0) return nullptr;
  uint32_t i = home(key, shard.capacity);
  while (shard.slots[i].key != 0 && shard.slots[i].key != key) i = (i + 1) & (shard.capacity - 1);
  return shard.slots[i].key != 0 ? &shard.slots[i] : nullptr;
}

bool Records::put(const Record& record, Record* previous) {
  previous->key = 0;
  if (!ensure(record.key != 0)) return false;  // 0 is a free slot.
  Shard& shard = shards_[shard_of(record.key)];
  shard.lock.lock();
  if (shard.used + 1 > shard.capacity / 4 * 3 &&
      !resize(shard, shard.capacity == 0 ? first_capacity : shard.capacity * 2)) {
    shard.lock.unlock();
    return false;
  }
  uint32_t to = home(record.key, shard.capacity);
  while (shard.slots[to].key != 0 && shard.slots[to].key != record.key) to = (to + 1) & (shard.capacity - 1);
  if (shard.slots[to].key == record.key) {
    *previous = shard.slots[to];
  } else {
    ++shard.used;
  }
  shard.slots[to] = record;
  shard.lock.unlock();
  return true;
}

bool Records::take(uint64_t key, Record* record) {
  Shard& shard = shards_[shard_of(key)];
  shard.lock.lock();
  const Record* found = at(shard, key);
  if (found != nullptr) {
    *record = *found;
    erase(shard, static_cast<uint32_t>(found - shard.slots));
    if (is_sparse(shard)) resize(shard, shard.capacity / 2);
  }
  shard.lock.unlock();
  return found != nullptr;
}

bool Records::find(uint64_t key, Record* record) {
  Shard& shard = shards_[shard_of(key)];
  shard.lock.lock();
  const Record* found = at(shard, key);
  if (found != nullptr) *record = *found;
  shard.lock.unlock();
  return found != nullptr;
}

bool Records::use(uint64_t key, int by, Record* record) {
  Shard& shard = shards_[shard_of(key)];
  shard.lock.lock();
  Record* found = at(shard, key);
  if (found != nullptr) {
    // If more ends than begins were counted, the record is removed.
    found->uses = ensure(by >= 0 || found->uses >= static_cast<uint32_t>(-by))
                      ? found->uses + static_cast<uint32_t>(by)
                      : 0;
    *record = *found;
    if (found->uses == 0) erase(shard, static_cast<uint32_t>(found - shard.slots));
  }
  shard.lock.unlock();
  return found != nullptr;
}

bool Records::recharge(uint64_t key, const Charge& charge) {
  Shard& shard = shards_[shard_of(key)];
  shard.lock.lock();
  Record* found = at(shard, key);
  if (found != nullptr)
    *found = {found->key, found->context, charge.bytes, charge.device, charge.lane, found->uses};
  shard.lock.unlock();
  return found != nullptr;
}

// Closes the gap by moving back the records that probed past it, so that no tombstones accumulate.
void Records::erase(Shard& shard, uint32_t free_block) {
  const uint32_t mask = shard.capacity - 1;
  uint32_t gap = free_block;
  for (uint32_t next = (gap + 1) & mask; shard.slots[next].key != 0; next = (next + 1) & mask) {
    const uint32_t wants = home(shard.slots[next].key, shard.capacity);
    if (((next - wants) & mask) < ((next - gap) & mask)) continue;  // It is between its home and the gap.
    shard.slots[gap] = shard.slots[next];
    gap = next;
  }
  shard.slots[gap].key = 0;
  if (ensure(shard.used != 0)) --shard.used;
}

}  // namespace carve::guest
