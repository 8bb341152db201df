// The hard rules of placement, in two tables: one for a node, and one for each of its devices. A row consists
// of a predicate, a short name (by which rejections are counted) and the message of the rejection. The engine
// combines the predicates into one inlined test, which takes about 10 ns for 8 devices; `explain` walks the
// rows. There are no other rules.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/invariant.h"
#include "place/fleet.h"
#include "place/part_devices.h"

namespace carve::place {

// Returns the memory that a part takes of this device.
constexpr Bytes need(const PartShape& part, const DeviceState& c) {
  if (part.part.basis_points == 0) return part.memory;
  invariant(part.part <= whole_device, "a part requests at most the whole device");
  const auto bytes = static_cast<unsigned __int128>(c.usable.count) * part.part.basis_points / 10000;
  return Bytes{static_cast<uint64_t>(bytes) & ~((uint64_t{1} << 20) - 1)};
}
inline Bytes need(const RequestShape& a, const DeviceState& c) {
  return a.exclusive ? c.usable : need(PartShape{a.memory, a.part, a.share}, c);
}
inline Share needed_share(const RequestShape& a) { return a.exclusive ? whole_device : a.share; }
// Returns the same for one of its parts, which may differ.
inline Bytes need(const RequestShape& a, unsigned part, const DeviceState& c) {
  return a.parts.empty() ? need(a, c) : need(a.parts[part], c);
}
inline Share needed_share(const RequestShape& a, unsigned part) {
  return a.parts.empty() ? needed_share(a) : a.parts[part].share;
}
// Returns the share of all parts, in basis points of a device.
inline uint64_t total_share(const RequestShape& a) {
  if (a.parts.empty()) return uint64_t{needed_share(a, 0).basis_points} * a.devices;
  uint64_t sum = 0;
  for (unsigned i = 0; i < a.devices; ++i) sum += needed_share(a, i).basis_points;
  return sum;
}

struct NodeRule {
  bool (*holds)(const NodeState&, const RequestShape&);
  std::string_view name;
  std::string (*otherwise)(const Fleet&, const NodeState&, const RequestShape&);
};
// The texts that a message about a device contains in addition to numbers.
struct DeviceText {
  std::string_view trouble;  // State of an unhealthy device: "lost from the bus since 12:04".
  std::string_view named;    // The device that the request names, if any.
};
struct DeviceRule {
  bool (*holds)(const DeviceState&, uint32_t number, const RequestShape&);
  std::string_view name;
  std::string (*otherwise)(const DeviceState&, const RequestShape&, const DeviceText&);
};

// Both tables list reasons that are permanent before those that may change with time.
std::span<const NodeRule> node_rules();
std::span<const DeviceRule> device_rules();

// Returns the devices of node n on which the parts of the request fit. Returns no value if the parts cannot
// have different devices, if a rule of the node rejects the request, or if there are too few devices of one
// size (needs_one_size()). A request without devices gets the empty set.
std::optional<FittingDevices> fitting(const Fleet&, uint32_t n, const RequestShape&);
// Returns the devices on which one part fits, even if the whole request does not fit.
DeviceSet fitting_part(const Fleet&, uint32_t n, const RequestShape&, unsigned part);

// Returns whether the request's devices must have equal usable memory. This is so if equal parts request a
// percentage, which is a different amount on a device of a different size.
bool needs_one_size(const RequestShape&);

}  // namespace carve::place
