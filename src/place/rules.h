// The hard rules of placement, as two tables: one for a node, one for each of its devices. A row is a
// predicate, its short name (refusals are counted by it) and the sentence of its refusal. The engine folds
// the predicates into one inlined test (8 devices: about 10 ns); `explain` walks the rows. There are no other
// rules.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/invariant.h"
#include "place/fleet.h"

namespace carve::place {

// Returns the memory that the request takes of this device.
constexpr Bytes need(const RequestShape& a, const DeviceState& c) {
  if (a.exclusive) return c.usable;
  if (a.part.basis_points == 0) return a.memory;
  invariant(a.part <= whole_device, "a part of a device is at most all of it");
  const auto part = static_cast<unsigned __int128>(c.usable.count) * a.part.basis_points / 10000;
  return Bytes{static_cast<uint64_t>(part) & ~((uint64_t{1} << 20) - 1)};
}
constexpr Share needed_share(const RequestShape& a) { return a.exclusive ? whole_device : a.share; }

struct NodeRule {
  bool (*holds)(const NodeState&, const RequestShape&);
  std::string_view name;
  std::string (*otherwise)(const Fleet&, const NodeState&, const RequestShape&);
};
// The texts that a sentence about a device needs beside the numbers.
struct DeviceText {
  std::string_view trouble;  // Of an unhealthy device: "lost from the bus since 12:04".
  std::string_view named;    // The device that the request names, if any.
};
struct DeviceRule {
  bool (*holds)(const DeviceState&, uint32_t number, const RequestShape&);
  std::string_view name;
  std::string (*otherwise)(const DeviceState&, const RequestShape&, const DeviceText&);
};

// In the order in which reasons are given: permanent ones before those that time may change.
std::span<const NodeRule> node_rules();
std::span<const DeviceRule> device_rules();

// Returns the devices of node n on which the request fits. Returns nothing if they are fewer than requested,
// or if a rule of the node refuses. A request without devices gets the empty set.
std::optional<DeviceSet> fitting(const Fleet&, uint32_t n, const RequestShape&);

}  // namespace carve::place
