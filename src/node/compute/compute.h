// The compute part of the agent: an arbiter for each device on which a slice's share is enforced, the
// policies, and the heartbeat that shows the guest library that an agent is running.
//
// The arbiter of a device schedules every slice of the device; a slice without an enforced share gets the
// remaining time. A device without an enforced share has no arbiter, and its slices launch without
// restriction.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/slice.h"
#include "node/compute/arbiter.h"
#include "node/compute/policies.h"
#include "wire/shm/layout.h"

namespace carve::node {

// Returns whether the arbiter enforces the slice's share.
bool is_share_enforced(const Slice&);

// Returns the slice's entitlement on the device of part `part`. A slice without an enforced share is a
// best-effort client, which gets the remaining time. Under native-burst-share, where a share is a weight, it
// gets an equal weight instead.
share::Entitlement entitlement_of(const Slice&, size_t part);

// One part of a live slice. Its pages must live until Compute::remove().
struct ComputePart {
  uint64_t slice = 0;  // The ledger's id.
  const Slice* granted = nullptr;
  unsigned part = 0;
  shm::Control* control = nullptr;
  std::span<const shm::ProcessWork> work;  // Indexed by slot.
  std::vector<unsigned> slots;             // Slots of the attached processes.
};

class Compute {
 public:
  // `heartbeat` must outlive this object.
  explicit Compute(shm::Heartbeat& heartbeat) : heartbeat_(heartbeat) {}

  // Makes the slice parts on a device the clients of its arbiter, with their current entitlements. Starts the
  // arbiter if a share is enforced, and ends it if none is. Returns the slices for which the arbiter has no
  // room.
  std::vector<uint64_t> arbitrate(const Device&, std::span<const ComputePart>);
  void remove(uint64_t slice, const Slice&);
  void add_process(uint64_t slice, const Slice&, unsigned slot);
  void remove_process(uint64_t slice, const Slice&, unsigned slot);

  void sample();  // Samples all arbiters; called several times a second.
  // Passes on the driver's report about the slice's kernels on the device.
  void support(const Uuid& device, uint64_t slice, const WorkShown&);
  bool is_arbitrating() const { return !arbiters_.empty(); }

  // Returns no value if the device is not arbitrated.
  std::optional<DeviceCompute> figures(const Uuid&) const;
  // Returns the spans of all devices that ended since `since_monotonic_ns`, oldest first.
  std::vector<TraceSpan> trace(int64_t since_monotonic_ns) const;

  Policies policies;

 private:
  template <class Call>
  void for_arbiters_of(const Slice&, Call);
  ArbiterClient client_of(const ComputePart&, Arbiter&);

  shm::Heartbeat& heartbeat_;
  std::map<uint64_t, std::shared_ptr<GangState>> gangs_;  // For slices with several devices.
  std::map<Uuid, std::unique_ptr<Arbiter>> arbiters_;
};

}  // namespace carve::node
