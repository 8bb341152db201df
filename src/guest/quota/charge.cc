#include "guest/quota/charge.h"

#include <sched.h>

#include "guest/linkage/ensure.h"
#include "guest/quota/shared_block.h"

namespace carve::guest {
namespace {

// Another process of the slice can change the word without pause, by false writes or by load. This many
// attempts take 20 to 70 ms, which is the longest possible wait.
constexpr unsigned attempts = 100'000;

// A lane that finds another lane's change in the word keeps released bytes as spare bytes for this many
// charges and releases. Then it changes the word again, and if the last change was its own, it keeps no more
// spare bytes.
constexpr unsigned keeps_after_meeting = 256;

// The lane that this thread tries first, plus one; 0 before its first charge. Threads begin at successive
// lanes. A thread that finds its lane taken stays with the next free one, so that two threads do not collide
// forever.
thread_local uint8_t lane_of_thread = 0;

unsigned first_lane(Process& process) {
  if (lane_of_thread == 0)
    lane_of_thread =
        static_cast<uint8_t>(process.next_lane.fetch_add(1, std::memory_order_relaxed) % shm::lanes + 1);
  return lane_of_thread - 1u;
}

bool exists(const Process& process, unsigned device) {
  return device < process.device_count || (device >= spilled(0) && device < spilled(process.device_count));
}

shm::Charges& charges_of(const Process& process, unsigned device) {
  return device < spilled(0) ? process.report->charges : process.report->spill;
}

shm::LaneId lane_id(const Process& process, const Charge& charge) {
  return {charge.device % shm::max_devices, process.slot, charge.lane};
}

shm::Spare& spare_of(const Process& process, const Charge& charge) {
  const shm::LaneId id = lane_id(process, charge);
  return charges_of(process, charge.device).process[id.process].spare[id.device][id.lane];
}

// Records a change of the lane. After it, the lane's allocations use all bytes that it holds.
void note(Process& process, LaneState& state, const Charge& of, uint64_t target, const shm::Learned& change)
    REQUIRES(state.lock) {
  state.recorded = state.target = target;
  state.returned = change.returned;
  if (!change.other_writer) return;
  shm::Charges& charges = charges_of(process, of.device);
  const shm::LaneId id = lane_id(process, of);
  if (!shm::may_have_spare(charges, id.device, id.process)) shm::mark_spare(charges, id.device, id.process);
  state.keeps = keeps_after_meeting;
}

// Sets the report's lane to `target`. `state` is the lane of the charge.
bool record(Process& process, LaneState& state, const Charge& of, uint64_t target, uint64_t limit)
    REQUIRES(state.lock) {
  shm::Learned learned;
  if (!shm::change(charges_of(process, of.device), lane_id(process, of), state.recorded, target, limit,
                   shm::NoStops{}, attempts, &learned))
    return false;
  note(process, state, of, target, learned);
  return true;
}

// Returns whether the lane keeps spare bytes now: it has met another lane, and the budget has room.
bool keeps_spare(const Process& process, LaneState& state, const Charge& of, uint64_t limit)
    REQUIRES(state.lock) {
  if (state.keeps == 0) return false;
  --state.keeps;
  return shm::read(charges_of(process, of.device).budget[of.device % shm::max_devices]).used <= limit;
}

bool add(Process& process, LaneState& state, const Charge& charge, uint64_t limit) REQUIRES(state.lock) {
  uint64_t target = 0;
  if (__builtin_add_overflow(state.target, charge.bytes, &target)) return false;
  if (keeps_spare(process, state, charge, limit) &&
      shm::take_spare(spare_of(process, charge), charge.bytes)) {
    state.target = target;
    return true;
  }
  return record(process, state, charge, target, limit);
}

// Adds the charge on the device's first free lane, which `charge.lane` then names.
bool add_on_free_lane(Process& process, Charge& charge, uint64_t limit) {
  const unsigned first = first_lane(process);
  for (unsigned tries = 0;; ++tries) {
    charge.lane = static_cast<uint16_t>((first + tries) % shm::lanes);
    LaneState& state = process.lane[charge.device][charge.lane];
    if (state.lock.try_lock()) {
      if (tries != 0) lane_of_thread = static_cast<uint8_t>(charge.lane + 1);
      const bool added = add(process, state, charge, limit);
      state.lock.unlock();
      return added;
    }
    if (tries % (16 * shm::lanes) == 16 * shm::lanes - 1) sched_yield();
  }
}

// The agent lowers a quota by storing it first and then reading the bytes in use (node/life/update.cc). A
// charge against the old quota reads the quota again: either the agent saw the charge, or this process sees
// the new quota.
bool lowered_below(const Process& process, unsigned device, uint64_t limit) {
  const uint64_t now = limit == UINT64_MAX ? limit : quota(process, device);
  return now < limit && used(process, device) > now;
}

bool grown(Process& process, Charge& charge, Bytes bytes, uint64_t limit) {
  if (bytes.count <= charge.bytes) {
    give_back(process, {charge.bytes - bytes.count, charge.device, charge.lane});
    charge.bytes = bytes.count;
    return true;
  }
  if (!exists(process, charge.device) || !ensure(charge.lane < shm::lanes)) return false;
  LaneState& state = process.lane[charge.device][charge.lane];
  state.lock.lock();
  const Charge more{bytes.count - charge.bytes, charge.device, charge.lane};
  const bool added = add(process, state, more, limit);
  state.lock.unlock();
  const bool allowed = added && !lowered_below(process, charge.device, limit);
  if (added && !allowed) give_back(process, more);
  if (allowed) charge.bytes = bytes.count;
  return allowed;
}

}  // namespace

uint64_t quota(const Process& process, unsigned device) {
  if (!exists(process, device)) return 0;
  if (device >= spilled(0))
    return __atomic_load_n(&process.control->devices[device - spilled(0)].spill, __ATOMIC_RELAXED);
  const shm::ControlDevice& granted = process.control->devices[device];
  shm::Memory memory = shm::Memory::limited;
  __atomic_load(&granted.memory, &memory, __ATOMIC_RELAXED);
  const bool limited = memory != shm::Memory::not_limited;
  const uint64_t agents = limited ? __atomic_load_n(&granted.quota, __ATOMIC_RELAXED) : UINT64_MAX;
  return agents < process.hint[device] ? agents : process.hint[device];
}

uint64_t used(const Process& process, unsigned device) {
  return exists(process, device) ? shm::in_use(charges_of(process, device), device % shm::max_devices).bytes
                                 : 0;
}

Reservation::Reservation(Process& process, unsigned device, Bytes bytes)
    : process_(process), asked_(bytes), device_(device) {
  again();
}

bool Reservation::again() {
  if (allowed_ || !exists(process_, device_)) return allowed_;
  charge_ = {asked_.count, static_cast<uint16_t>(device_), 0};
  if (asked_.count == 0) return allowed_ = true;
  const uint64_t limit = quota(process_, device_);
  allowed_ = add_on_free_lane(process_, charge_, limit);
  if (allowed_ && lowered_below(process_, device_, limit)) {
    give_back(process_, charge_);
    allowed_ = false;
  }
  if (allowed_) return true;
  charge_.bytes = 0;
  return allowed_ = limit == UINT64_MAX;
}

Reservation::~Reservation() {
  if (!kept_) give_back(process_, charge_);
}

bool Reservation::resize(Bytes bytes) {
  return grown(process_, charge_, bytes, quota(process_, device_)) || quota(process_, device_) == UINT64_MAX;
}

bool recharge(Process& process, Charge& charge, Bytes bytes) {
  const uint64_t limit = quota(process, charge.device);
  return grown(process, charge, bytes, limit) || limit == UINT64_MAX;
}

void recharge_truth(Process& process, Charge& charge, Bytes bytes) {
  grown(process, charge, bytes, UINT64_MAX);
}

bool move_to_block(Process& process, const Charge& charge, unsigned block) {
  if (!ensure(charge.lane < shm::lanes) || charge.device >= process.device_count) return false;
  LaneState& state = process.lane[charge.device][charge.lane];
  shm::Charges& charges = process.report->charges;
  state.lock.lock();
  bool moved = false;
  if (ensure(state.target >= charge.bytes)) {
    const uint64_t target = state.target - charge.bytes;
    const uint64_t inside = shm::holding(charges, shm::lane_of(charges, block));
    shm::Learned learned;
    moved = shm::move(charges, {lane_id(process, charge), state.recorded, target},
                      {shm::lane_of(charges, block), inside, inside + charge.bytes}, shm::NoStops{}, attempts,
                      &learned);
    if (moved) note(process, state, charge, target, learned);
  }
  state.lock.unlock();
  return moved;
}

void give_back(Process& process, const Charge& charge) {
  if (charge.device == in_shared_block) return leave(process, static_cast<unsigned>(charge.bytes));
  if (charge.bytes == 0 || charge.device >= budgets) return;  // A suballocation is charged with its pool.
  if (!ensure(charge.lane < shm::lanes)) return;              // The bytes stay charged.
  LaneState& state = process.lane[charge.device][charge.lane];
  state.lock.lock();
  state.target = ensure(state.target >= charge.bytes) ? state.target - charge.bytes : 0;
  if (!keeps_spare(process, state, charge, quota(process, charge.device)) ||
      !shm::add_spare(spare_of(process, charge), charge.bytes, state.returned)) {
    // If other processes changed the word at every attempt, the lane's next change includes this release.
    record(process, state, charge, state.target, UINT64_MAX);
  }
  state.lock.unlock();
}

}  // namespace carve::guest
