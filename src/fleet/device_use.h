// The amounts of a node's devices that slices take, and the amounts that placement may still grant.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fleet/gpu_node.h"
#include "place/fleet.h"
#include "place/place.h"

namespace carve::fleet {

// The amounts of a device that slices take.
struct DeviceUse {
  Bytes memory;    // May exceed what is usable if the device shrank.
  Share promised;  // Of its compute.
  unsigned slices = 0;
  unsigned isolated = 0;  // Slices whose memory is limited.
  bool is_exclusive = false;

  friend bool operator==(const DeviceUse&, const DeviceUse&) = default;
};

// The part of a slice on one device.
struct HeldPart {
  Bytes memory;
  Share share;  // 0 if no share was requested.
  Isolation isolation = Isolation::memory;
  Policy policy = Policy::fixed_share;
  bool is_exclusive = false;
};

void add(DeviceUse&, const HeldPart&);
// Removes a part that was added.
void remove(DeviceUse&, const HeldPart&);

// Returns whether more of the device is granted than it has.
bool is_overcommitted(const GpuDevice&, const DeviceUse&);

// Returns the device's free amounts, in the engine's form.
place::DeviceState state_of(const GpuDevice&, const DeviceUse&, bool refuses_best_effort);

// Returns the device's state for a decision on its node, and for the reasons of a rejection.
place::DeviceSnapshot snapshot_of(const GpuDevice&, const DeviceUse&, bool refuses_best_effort);

// Adds the node, as if no slice was on it, to the engine's fleet. Returns its number, or no value if it has
// no device. Fails with a message if the fleet would have too many device models.
Result<std::optional<uint32_t>, std::string> join(place::Fleet&, const GpuNode&);

// Sets the free amounts of the devices of the node with this number. `uses` has a row for each device.
void set_uses(place::Fleet&, uint32_t number, const GpuNode&, std::span<const DeviceUse> uses);

}  // namespace carve::fleet
