// A request as the engine counts it: numbers only, fixed size, comparable. Two requests that ask for the same
// are one *kind*, and the engine's caches are per kind: a cluster sees tens of thousands of requests a day
// and a few hundred kinds (openb: 8,152 pods, 151 kinds).
#pragma once

#include <compare>
#include <cstdint>

#include "core/request.h"

namespace carve::place {

using Models = uint64_t;  // One bit for each model that a fleet knows.
inline constexpr Models any_model = ~Models{0};
inline constexpr unsigned max_models = 64;
inline constexpr uint32_t any_device = UINT32_MAX;
inline constexpr uint8_t any_policy = UINT8_MAX;

struct RequestShape {
  // Of each device.
  Bytes memory;         // Where part is 0.
  Share part;           // Of the device's usable memory, rounded down to whole MiB.
  Share share;          // 0: no compute is asked for.
  Bytes spill;          // On the host beyond the quota: managed oversubscription.
  uint8_t devices = 1;  // Distinct ones of one node; 0: a request for the node's CPU and memory alone.
  bool exclusive = false;
  bool isolated = true;
  bool best_effort = false;     // No share of it is enforced: it takes of the compute what it likes.
  uint8_t policy = any_policy;  // The node's effective one must be equal: static_cast of carve::Policy.
  uint32_t only = any_device;   // This device (its number in the fleet), no other.
  Models models = any_model;
  // Of the node.
  uint32_t cpu_milli = 0;
  Bytes host_memory;

  friend bool operator==(const RequestShape&, const RequestShape&) = default;
  friend auto operator<=>(const RequestShape&, const RequestShape&) = default;
};

}  // namespace carve::place
