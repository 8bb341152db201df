#include "wire/shm/budget.h"

namespace carve::shm {

Lane* find_lane(Report& report, LaneId id) {
  if (id.device >= max_devices) return nullptr;
  if (id.process == Tag::agent) return &report.growth[id.device];
  if (id.process >= max_processes || id.lane >= lanes) return nullptr;
  return &report.process[id.process].lane[id.device][id.lane];
}

bool exchange(Budget& budget, Word expected, Word desired) {
  const auto whole = [](Word w) { return static_cast<unsigned __int128>(w.tag) << 64 | w.used; };
  auto* word = reinterpret_cast<unsigned __int128*>(&budget.used);
  return __sync_bool_compare_and_swap(word, whole(expected), whole(desired));
}

void witness(Report& report, unsigned device, Tag tag) {
  if (tag.number() == 0) return;
  Lane* lane = find_lane(report, {device, tag.process(), tag.lane()});
  if (lane == nullptr) return;
  uint64_t seen = lane->seen.load(std::memory_order_acquire);
  while (seen < tag.number() && !lane->seen.compare_exchange_weak(seen, tag.number())) {}
}

uint64_t holding(Report& report, LaneId id) {
  Lane* lane = find_lane(report, id);
  if (lane == nullptr) return 0;
  const uint64_t number = lane->announced.load(std::memory_order_acquire);
  const uint64_t tag =
      __atomic_load_n(&report.budget[id.device].tag, __ATOMIC_ACQUIRE);  // The word first, `seen` second.
  const bool happened = tag == Tag::of(id.process, id.lane, number).value ||
                        lane->seen.load(std::memory_order_acquire) >= number;
  const Lane::Change& last = lane->change[number % 2];
  return __atomic_load_n(happened ? &last.to : &last.from, __ATOMIC_RELAXED);
}

}  // namespace carve::shm
