#include "guest/quota/charge.h"

#include <sched.h>

#include "guest/linkage/ensure.h"
#include "guest/quota/shared_block.h"

namespace carve::guest {
namespace {

// Another process of the slice can change the word without pause, by false writes or by load. So many
// attempts take 20 to 70 ms, the longest wait.
constexpr unsigned attempts = 100'000;

// Thread stacks are some megabytes apart, so this spreads threads over the lanes without a thread-local.
unsigned home_lane() {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) >> 23) % shm::lanes;
}

bool exists(const Process& process, unsigned device) {
  return device < process.device_count || (device >= spilled(0) && device < spilled(process.device_count));
}

shm::Charges& charges_of(const Process& process, unsigned device) {
  return device < spilled(0) ? process.report->charges : process.report->spill;
}

// Sets the report's lane to `target`. `state` is the lane of the charge.
bool record(Process& process, LaneState& state, const Charge& of, uint64_t target, uint64_t limit)
    REQUIRES(state.lock) {
  if (!shm::change(charges_of(process, of.device), {of.device % shm::max_devices, process.slot, of.lane},
                   state.recorded, target, limit, shm::NoStops{}, attempts))
    return false;
  state.recorded = state.target = target;
  return true;
}

bool add(Process& process, LaneState& state, const Charge& charge, uint64_t limit) REQUIRES(state.lock) {
  uint64_t target = 0;
  return !__builtin_add_overflow(state.target, charge.bytes, &target) &&
         record(process, state, charge, target, limit);
}

// Adds the charge on the device's first free lane, which `charge.lane` then names.
bool add_on_free_lane(Process& process, Charge& charge, uint64_t limit) {
  const unsigned home = home_lane();
  for (unsigned tries = 0;; ++tries) {
    charge.lane = static_cast<uint16_t>((home + tries) % shm::lanes);
    LaneState& state = process.lane[charge.device][charge.lane];
    if (state.lock.try_lock()) {
      const bool added = add(process, state, charge, limit);
      state.lock.unlock();
      return added;
    }
    if (tries % (16 * shm::lanes) == 16 * shm::lanes - 1) sched_yield();
  }
}

// The agent lowers a quota by storing it first and reading the use then (node/slice/update.cc). A charge
// against the old quota reads the quota again: either the agent saw the charge, or this process sees the new
// quota.
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
  return exists(process, device)
             ? shm::read(charges_of(process, device).budget[device % shm::max_devices]).used
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
  bool moved = ensure(state.target >= charge.bytes);
  const uint64_t target = state.target - charge.bytes;
  const uint64_t inside = shm::holding(charges, shm::lane_of(charges, block));
  moved = moved &&
          shm::move(charges, {{charge.device, process.slot, charge.lane}, state.recorded, target},
                    {shm::lane_of(charges, block), inside, inside + charge.bytes}, shm::NoStops{}, attempts);
  if (moved) state.recorded = state.target = target;
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
  // If the word changed at every attempt, the lane's next change includes this release.
  record(process, state, charge, state.target, UINT64_MAX);
  state.lock.unlock();
}

}  // namespace carve::guest
