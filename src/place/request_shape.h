// A request as the engine counts it: numbers only, fixed size, comparable. Equal shapes are one *request
// class*, and the engine's caches are per class. A cluster sees tens of thousands of requests a day and a few
// hundred classes (openb: 8,152 pods, 151 classes).
#pragma once

#include <compare>
#include <cstdint>

#include "core/request.h"

namespace carve::place {

using Models = uint64_t;  // One bit per model that a fleet knows.
inline constexpr Models any_model = ~Models{0};
inline constexpr unsigned max_models = 64;
// One bit per kind of node: nodes of one kind have the same settings, which the caller numbers.
using NodeKinds = uint32_t;
inline constexpr NodeKinds any_kind = ~NodeKinds{0};
inline constexpr unsigned max_node_kinds = 32;
inline constexpr uint32_t any_device = UINT32_MAX;
inline constexpr uint8_t any_policy = UINT8_MAX;

struct RequestShape {
  // Amounts of each device.
  Bytes memory;         // Bytes, if part is 0.
  Share part;           // Part of the device's usable memory, rounded down to whole MiB.
  Share share;          // Compute share; 0: no compute is requested.
  Bytes spill;          // Bytes on the host beyond the quota: managed oversubscription.
  uint8_t devices = 1;  // Distinct devices of one node; 0: only the node's CPU and memory are requested.
  bool exclusive = false;
  bool isolated = true;
  bool best_effort = false;     // No share is enforced: the slice's compute is not limited.
  uint8_t policy = any_policy;  // Required effective policy of the node: static_cast of carve::Policy.
  uint32_t only = any_device;   // Only this device (its number in the fleet).
  Models models = any_model;
  NodeKinds kinds = any_kind;  // That grant it with these amounts.
  // Amounts of the node.
  uint32_t cpu_milli = 0;
  Bytes host_memory;

  friend bool operator==(const RequestShape&, const RequestShape&) = default;
  friend auto operator<=>(const RequestShape&, const RequestShape&) = default;
};

}  // namespace carve::place
