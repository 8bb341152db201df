#include "wire/shm/budget.h"

#include <bit>

namespace carve::shm {
namespace {

// Calls `f(id, spare)` for the lanes of a device that may have spare bytes.
template <class F>
void each_spare(Charges& charges, unsigned device, F f) {
  for (unsigned word = 0; word < max_processes / 64; ++word)
    for (uint64_t slots = charges.spare_slots[device][word].load(std::memory_order_acquire); slots != 0;
         slots &= slots - 1) {
      const unsigned process = word * 64 + static_cast<unsigned>(std::countr_zero(slots));
      for (unsigned lane = 0; lane < lanes; ++lane)
        f(LaneId{device, process, lane}, charges.process[process].spare[device][lane]);
    }
}

bool happened(Charges& charges, const LaneId& id, const Lane& lane, uint64_t number, uint64_t tag) {
  if (tag == Tag::of(id.process, id.lane, number).value ||
      lane.seen.load(std::memory_order_acquire) >= number)
    return true;
  if (lane.joined_number.load(std::memory_order_acquire) != number) return false;
  const Tag joined{lane.joined.load(std::memory_order_acquire)};
  const Lane* with = find_lane(charges, {id.device, joined.process(), joined.lane()});
  return tag == joined.value ||
         (with != nullptr && with->seen.load(std::memory_order_acquire) >= joined.number());
}

// Compares both halves, because `before` may be the old bytes with the new tag.
bool unchanged(const Budget& budget, const Word& before) {
  const Word now = read(budget);
  return now.used == before.used && now.tag == before.tag;
}

}  // namespace

Holding read_holding(Charges& charges, const LaneId& id) {
  const Lane* lane = find_lane(charges, id);
  if (lane == nullptr) return {};
  const uint64_t announced = lane->announced.load(std::memory_order_acquire);
  const uint64_t number = announced & Tag::numbers;
  const uint64_t tag =
      __atomic_load_n(&charges.budget[id.device].tag, __ATOMIC_ACQUIRE);  // Read before `seen`.
  const bool done = happened(charges, id, *lane, number, tag);
  const Lane::Change& last = lane->change[number % 2];
  Holding out{.bytes = __atomic_load_n(done ? &last.to : &last.from, __ATOMIC_ACQUIRE)};
  if (const Spare* spare = find_spare(charges, id)) {
    const Spare::Returned returned = spare->returned[number % 2].load(std::memory_order_acquire);
    out.returned = done ? returned.to : returned.from;
  }
  out.stable = lane->announced.load(std::memory_order_acquire) == announced;
  return out;
}

InUse in_use(Charges& charges, unsigned device) {
  const Budget& budget = charges.budget[device];
  InUse out;
  for (int tries = 0; tries < 100; ++tries) {
    const Word now = read(budget);
    uint64_t unused = 0;
    bool stable = true;
    out.version = now.tag;
    each_spare(charges, device, [&](LaneId id, const Spare& lane) {
      const SpareWord spare{lane.word.load(std::memory_order_acquire)};
      const Holding held = read_holding(charges, id);
      stable &= held.stable;
      unused += std::min(held.bytes, spare.spare() + withdrawn_between(held.returned, spare.withdrawn()));
      out.version += spare.version() << 20;
    });
    out.bytes = now.used - std::min(now.used, unused);
    if (stable && unchanged(budget, now)) break;
  }
  return out;
}

uint64_t in_use_by(Charges& charges, const LaneId& id) {
  const Holding held = read_holding(charges, id);
  const Spare* lane = find_spare(charges, id);
  if (lane == nullptr) return held.bytes;
  const SpareWord spare{lane->word.load(std::memory_order_acquire)};
  return held.bytes -
         std::min(held.bytes, spare.spare() + withdrawn_between(held.returned, spare.withdrawn()));
}

Room make_room(Charges& charges, const LaneId& self, Word now, uint64_t needed) {
  uint64_t bytes = 0;
  bool stable = true;
  const auto of_lane = [&](LaneId id, uint32_t count) {
    const Holding held = read_holding(charges, id);
    stable &= held.stable;
    return std::min(held.bytes, withdrawn_between(held.returned, count));
  };
  each_spare(charges, self.device, [&](LaneId id, Spare& lane) {
    if (id == self) return;
    bytes += of_lane(id, SpareWord{lane.word.load(std::memory_order_acquire)}.withdrawn());
  });
  if (bytes < needed) {
    bytes = 0;
    each_spare(charges, self.device, [&](LaneId id, Spare& lane) {
      if (id == self) return;
      const SpareWord spare{lane.word.load(std::memory_order_acquire)};
      bytes += of_lane(id, bytes < needed ? withdraw_spare(lane) : spare.withdrawn());
    });
  }
  if (!stable || !unchanged(charges.budget[self.device], now)) return Room::unknown;
  return bytes < needed ? Room::none : Room::enough;
}

}  // namespace carve::shm
