#include "wire/shm/budget.h"

namespace carve::shm {

uint64_t holding(Charges& charges, LaneId id) {
  Lane* lane = find_lane(charges, id);
  if (lane == nullptr) return 0;
  const uint64_t number = lane->announced.load(std::memory_order_acquire) & Tag::numbers;
  const uint64_t tag =
      __atomic_load_n(&charges.budget[id.device].tag, __ATOMIC_ACQUIRE);  // The word first, `seen` second.
  bool happened = tag == Tag::of(id.process, id.lane, number).value ||
                  lane->seen.load(std::memory_order_acquire) >= number;
  if (!happened && lane->joined_number.load(std::memory_order_acquire) == number) {
    const Tag joined{lane->joined.load(std::memory_order_acquire)};
    const Lane* with = find_lane(charges, {id.device, joined.process(), joined.lane()});
    happened = tag == joined.value ||
               (with != nullptr && with->seen.load(std::memory_order_acquire) >= joined.number());
  }
  const Lane::Change& last = lane->change[number % 2];
  return __atomic_load_n(happened ? &last.to : &last.from, __ATOMIC_RELAXED);
}

}  // namespace carve::shm
