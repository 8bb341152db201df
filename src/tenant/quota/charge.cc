#include "tenant/quota/charge.h"

#include <sched.h>

namespace carve::tenant {
namespace {

// Another process of the tenant can keep the word moving, by scribbling or by sheer load. A million tries are
// about 50 ms; nobody waits longer than that.
constexpr unsigned attempts = 1'000'000;

// Threads have their stacks some megabytes apart, so this spreads them over the lanes without a thread-local.
unsigned home_lane() {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) >> 23) % shm::lanes;
}

// Claims any lane of the device for this thread.
unsigned claim(Process& process, unsigned device) {
  const unsigned home = home_lane();
  for (unsigned tries = 0;; ++tries) {
    const unsigned lane = (home + tries) % shm::lanes;
    if (process.lane[device][lane].lock.try_lock()) return lane;
    if (tries % (16 * shm::lanes) == 16 * shm::lanes - 1) sched_yield();
  }
}

// Brings the report's lane to `target`; the caller holds the lane.
bool record(Process& process, unsigned device, unsigned lane, uint64_t target, uint64_t limit) {
  LaneState& state = process.lane[device][lane];
  if (!shm::change(*process.report, {device, process.slot, lane}, state.recorded, target, limit,
                   shm::NoStops{}, attempts))
    return false;
  state.recorded = state.target = target;
  return true;
}

bool add(Process& process, const Charge& charge) {
  LaneState& state = process.lane[charge.device][charge.lane];
  uint64_t target = 0;
  return !__builtin_add_overflow(state.target, charge.bytes, &target) &&
         record(process, charge.device, charge.lane, target, quota(process, charge.device));
}

}  // namespace

uint64_t quota(const Process& process, unsigned device) {
  if (device >= process.device_count) return 0;
  const shm::ControlDevice& granted = process.control->devices[device];
  shm::Memory memory = shm::Memory::limited;
  __atomic_load(&granted.memory, &memory, __ATOMIC_RELAXED);
  const bool limited = memory != shm::Memory::not_limited;
  const uint64_t agents = limited ? __atomic_load_n(&granted.quota, __ATOMIC_RELAXED) : UINT64_MAX;
  return agents < process.hint[device] ? agents : process.hint[device];
}

uint64_t used(const Process& process, unsigned device) {
  return device < process.device_count ? shm::read(process.report->budget[device]).used : 0;
}

Reservation::Reservation(Process& process, unsigned device, Bytes bytes) : process_(process) {
  if (device >= process.device_count) return;
  charge_.bytes = bytes.count;
  charge_.device = static_cast<uint16_t>(device);
  if (bytes.count == 0) {
    allowed_ = true;
    return;
  }
  const unsigned lane = claim(process, device);
  charge_.lane = static_cast<uint16_t>(lane);
  allowed_ = add(process, charge_);
  process.lane[device][lane].lock.unlock();
  if (allowed_) return;
  charge_.bytes = 0;
  allowed_ = quota(process, device) == UINT64_MAX;
}

Reservation::~Reservation() {
  if (!kept_) give_back(process_, charge_);
}

bool Reservation::resize(Bytes bytes) {
  if (bytes.count <= charge_.bytes) {
    give_back(process_, {charge_.bytes - bytes.count, charge_.device, charge_.lane});
    charge_.bytes = bytes.count;
    return true;
  }
  const Charge more = {bytes.count - charge_.bytes, charge_.device, charge_.lane};
  LaneState& state = process_.lane[more.device][more.lane];
  state.lock.lock();
  const bool added = add(process_, more);
  state.lock.unlock();
  if (added) charge_.bytes = bytes.count;
  return added || quota(process_, more.device) == UINT64_MAX;
}

void give_back(Process& process, const Charge& charge) {
  if (charge.bytes == 0) return;
  LaneState& state = process.lane[charge.device][charge.lane];
  state.lock.lock();
  state.target = state.target > charge.bytes ? state.target - charge.bytes : 0;
  // Where the word never stood still the lane's next change makes up for it.
  record(process, charge.device, charge.lane, state.target, UINT64_MAX);
  state.lock.unlock();
}

}  // namespace carve::tenant
