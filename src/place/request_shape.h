// A request in the form that the engine uses, which consists only of numbers and is comparable. Requests with
// equal shapes form a *request class*, and the engine caches per class. A cluster gets tens of thousands of
// requests a day in a few hundred classes (openb: 8,152 pods, 151 classes).
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/request.h"

namespace carve::place {

using Models = uint64_t;  // One bit per model that a fleet knows.
inline constexpr Models any_model = ~Models{0};
inline constexpr unsigned max_models = 64;
// One bit per kind of node. Nodes of one kind have the same settings. The caller numbers the kinds.
using NodeKinds = uint64_t;
inline constexpr NodeKinds any_kind = ~NodeKinds{0};
inline constexpr unsigned max_node_kinds = 64;
inline constexpr uint32_t any_device = UINT32_MAX;
inline constexpr uint8_t any_policy = UINT8_MAX;

// The amounts of one device.
struct PartShape {
  Bytes memory;  // Bytes, if part is 0.
  Share part;    // Part of the device's usable memory, rounded down to whole MiB.
  Share share;   // 0 if no compute is requested.

  friend bool operator==(const PartShape&, const PartShape&) = default;
  friend auto operator<=>(const PartShape&, const PartShape&) = default;
};

struct RequestShape {
  // Amounts of each device. Used if `parts` is empty.
  Bytes memory;         // Bytes, if part is 0.
  Share part;           // Part of the device's usable memory, rounded down to whole MiB.
  Share share;          // 0 if no compute is requested.
  Bytes spill;          // Bytes on the host beyond the quota: managed oversubscription.
  uint8_t devices = 1;  // Different devices of one node; 0 if only the node's CPU and memory are requested.
  bool exclusive = false;
  bool isolated = true;
  bool best_effort = false;     // No share is enforced, so the slice's compute is not limited.
  uint8_t policy = any_policy;  // Effective policy that the node must have, as the number of carve::Policy.
  uint32_t only = any_device;   // The only allowed device (its number in the fleet).
  Models models = any_model;
  NodeKinds kinds = any_kind;  // Kinds of nodes that grant the request with these amounts.
  // Amounts of the node.
  uint32_t cpu_milli = 0;
  Bytes host_memory;
  // Amounts of each device if they differ. The size then equals `devices`, and `memory`, `part` and `share`
  // are 0.
  std::vector<PartShape> parts;

  friend bool operator==(const RequestShape&, const RequestShape&) = default;
  friend auto operator<=>(const RequestShape&, const RequestShape&) = default;
};

// Returns the amounts of a part. Parts are numbered from 0.
inline PartShape part_of(const RequestShape& a, unsigned i) {
  return a.parts.empty() ? PartShape{a.memory, a.part, a.share} : a.parts[i];
}
// Returns the request with the amounts of one part on each device, to which the rules of a device are
// applied.
inline RequestShape shape_of_part(const RequestShape& a, unsigned i) {
  RequestShape out = a;
  const PartShape part = part_of(a, i);
  out.memory = part.memory, out.part = part.part, out.share = part.share;
  out.parts.clear();
  return out;
}

}  // namespace carve::place
