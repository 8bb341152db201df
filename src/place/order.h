// Sets of devices, and choices from them in an order.
#pragma once

#include <algorithm>
#include <bit>

#include "core/invariant.h"
#include "place/fleet.h"

namespace carve::place {

// Returns the `count` lowest members.
constexpr DeviceSet lowest(DeviceSet set, unsigned count) {
  DeviceSet out = 0;
  for (; count > 0 && set != 0; --count) {
    out = out | (set & -set);
    set &= set - 1;
  }
  return out;
}

// Returns the `count` members whose devices have the smallest key; the lower one among equals.
template <class Key>
DeviceSet first_by(std::span<const DeviceState> devices, DeviceSet set, unsigned count, Key key) {
  DeviceSet out = 0;
  for (; count > 0 && set != 0; --count) {
    auto best = static_cast<unsigned>(std::countr_zero(set));
    for (unsigned i = best + 1; i < devices.size(); ++i)
      if ((set >> i & 1) != 0 && key(devices[i]) < key(devices[best])) best = i;
    out = out | 1u << best;
    set &= ~(1u << best);
  }
  return out;
}

// Returns how much of a device is free, as one number for ordering: of the dimension that the request uses,
// or of both if it uses both.
inline uint64_t freedom(const RequestShape& shape, const DeviceState& c) {
  const bool compute = shape.exclusive || shape.share.basis_points != 0;
  const bool memory = shape.exclusive || shape.memory.count != 0 || shape.part.basis_points != 0;
  if (!memory) return c.free_share.basis_points;
  if (!compute) return c.free.count;
  const auto part = static_cast<uint64_t>(static_cast<unsigned __int128>(c.free.count) * (1 << 20) /
                                          (c.usable.count == 0 ? 1 : c.usable.count));
  return part * 10000 + uint64_t{c.free_share.basis_points} * (1 << 20);
}

// Returns how full a node's devices are, from 0 to 200: the sum of the fuller one of compute and memory on
// each.
inline unsigned taken_in_200(const Fleet& fleet, uint32_t n) {
  const auto devices = fleet.devices(n);
  uint64_t taken = 0;  // In basis points.
  for (const DeviceState& c : devices) {
    // With --overcommit-compute all of a device stays free, so more than all of it is free while a slice is
    // moved.
    const uint64_t compute = whole_device.basis_points - std::min(c.free_share, whole_device).basis_points;
    const auto memory =
        c.usable.count == 0
            ? 0
            : static_cast<uint64_t>(static_cast<unsigned __int128>(minus(c.usable, c.free).count) * 10000 /
                                    c.usable.count);
    taken += compute > memory ? compute : memory;
  }
  invariant(taken <= 10000 * devices.size(), "no device is more than full");
  return devices.empty() ? 200 : static_cast<unsigned>(taken * 200 / (10000 * devices.size()));
}

}  // namespace carve::place
