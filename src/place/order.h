// Sort keys for how full devices and nodes are.
#pragma once

#include <algorithm>
#include <bit>

#include "core/invariant.h"
#include "place/fleet.h"

namespace carve::place {

// Returns how much of a device is free, as a single number for ordering. It covers the dimension that the
// part of the request uses, or both if the part uses both.
inline uint64_t freedom(const RequestShape& shape, unsigned i, const DeviceState& c) {
  const PartShape part = part_of(shape, i);
  const bool compute = shape.exclusive || part.share.basis_points != 0;
  const bool memory = shape.exclusive || part.memory.count != 0 || part.part.basis_points != 0;
  if (!memory) return c.free_share.basis_points;
  if (!compute) return c.free.count;
  const auto free = static_cast<uint64_t>(static_cast<unsigned __int128>(c.free.count) * (1 << 20) /
                                          (c.usable.count == 0 ? 1 : c.usable.count));
  return free * 10000 + uint64_t{c.free_share.basis_points} * (1 << 20);
}

// Returns how full a node's devices are, from 0 to 200: the sum over the devices of the fuller of compute and
// memory.
inline unsigned taken_in_200(const Fleet& fleet, uint32_t n) {
  const auto devices = fleet.devices(n);
  uint64_t taken = 0;  // In basis points.
  for (const DeviceState& c : devices) {
    // With --overcommit-compute, all compute of a device stays free, so more than all of it is free while a
    // slice is moved.
    const uint64_t compute = whole_device.basis_points - std::min(c.free_share, whole_device).basis_points;
    const auto memory =
        c.usable.count == 0
            ? 0
            : static_cast<uint64_t>(static_cast<unsigned __int128>(minus(c.usable, c.free).count) * 10000 /
                                    c.usable.count);
    taken += compute > memory ? compute : memory;
  }
  invariant(taken <= 10000 * devices.size(), "no device is over-committed");
  return devices.empty() ? 200 : static_cast<unsigned>(taken * 200 / (10000 * devices.size()));
}

}  // namespace carve::place
