// What must hold before a request may stand somewhere, as two tables: what concerns a node, and what concerns
// one of its devices. Each row is a predicate, its short name (which reasons are counted under) and the
// sentence for whoever is refused. The engine folds the predicates into one inlined test (8 devices: about 10
// ns); `explain` walks the rows. There is no second list: what is not here is not a rule.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "place/fleet.h"

namespace carve::place {

// What the request takes of this device.
constexpr Bytes need(const RequestShape& a, const DeviceState& c) {
  if (a.exclusive) return c.usable;
  if (a.part.basis_points == 0) return a.memory;
  const auto part = static_cast<unsigned __int128>(c.usable.count) * a.part.basis_points / 10000;
  return Bytes{static_cast<uint64_t>(part) & ~((uint64_t{1} << 20) - 1)};
}
constexpr Share needed_share(const RequestShape& a) { return a.exclusive ? whole_device : a.share; }

struct NodeRule {
  bool (*holds)(const NodeState&, const RequestShape&);
  std::string_view name;
  std::string (*otherwise)(const Fleet&, const NodeState&, const RequestShape&);
};
// What a sentence about a device may need beside the numbers that decisions read.
struct DeviceText {
  std::string_view trouble;  // Of a sick device: "lost from the bus since 12:04".
  std::string_view named;    // The device that the request names, where it names one.
};
struct DeviceRule {
  bool (*holds)(const DeviceState&, uint32_t number, const RequestShape&);
  std::string_view name;
  std::string (*otherwise)(const DeviceState&, const RequestShape&, const DeviceText&);
};

// In the order in which a reason is given: what nobody can change before what time may change.
std::span<const NodeRule> node_rules();
std::span<const DeviceRule> device_rules();

// The devices of node n on which the request could stand, where they are enough and the node itself may
// serve; otherwise nothing. A request for no device has the empty set as its answer.
std::optional<DeviceSet> fitting(const Fleet&, uint32_t n, const RequestShape&);

}  // namespace carve::place
