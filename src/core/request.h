// A request before placement. A request that validated() returns is consistent; place/ decides whether it
// fits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/container_slot.h"
#include "core/failure.h"
#include "core/label.h"
#include "core/slice.h"

namespace carve {

// The three forms of a memory request. Each leads to an amount per device.
struct PerDevice {
  Bytes memory;
};
struct InTotal {  // Divided equally over the devices.
  Bytes memory;
};
struct OfUsable {  // A part of each device's usable memory, rounded down to whole MiB.
  Share part;
};

struct Request {
  std::string name;  // Empty: the agent chooses one.
  std::string request_id;
  uint32_t owner = 0;
  std::variant<std::monostate, PerDevice, InTotal, OfUsable> memory;
  Share share;  // Of each device; 0: none requested.
  Bytes spill;  // Bytes per device in host memory, beyond the quota.
  unsigned devices = 1;
  bool exclusive = false;
  Lifetime lifetime = Lifetime::processes;
  std::optional<Uuid> device;  // The only device allowed.
  // The parts, if they were decided elsewhere: without `memory`, `share`, `device` and `strategy`. Empty:
  // placement decides. Parts of an exclusive request have no share, and no memory or all that is usable.
  std::vector<PlacedPart> placed;
  std::optional<Strategy> strategy;
  std::optional<Isolation> isolation;  // No value: isolated() decides.
  std::optional<Policy> policy;        // No value: the device's policy.
  LatencyClass latency = LatencyClass::batch;
  std::string account;  // Who pays.

  // For placement among several nodes.
  std::vector<std::string> models;  // Allowed models, as the driver names them; empty: any.
  uint32_t cpu_milli = 0;           // Of the node, in thousandths of a core.
  Bytes host_memory;                // Of the node.
  std::string application;          // Its replicas go to different devices (place/engine.h).
  std::map<std::string, std::string> labels;
  MemoryUnits memory_units;           // How `memory` was written, if it was written in units.
  Holder holder;                      // The container or the claim that the slice is for.
  std::optional<ContainerSlot> slot;  // Of the container: where it attaches.

  // Returns the isolation of the slice: the requested one, or as much as the request has limits for.
  Isolation isolated() const { return isolation.value_or(default_isolation(first_share())); }
  // Returns the share on each device; with placed parts, that on the first one.
  Share first_share() const { return placed.empty() ? share : placed.front().share; }
};

inline constexpr unsigned max_slice_devices = 16;    // As the shared memory has room for (wire/shm/layout.h).
inline constexpr unsigned max_isolated_slices = 16;  // Per device, slices with isolated memory.
inline constexpr unsigned max_allowed_models = 64;
inline constexpr Bytes min_memory = 1_MiB;

// Returns the request, or the first rule that it violates.
Outcome<Request> validated(Request);

// Returns the bytes that the request needs on this device. Only for a validated request.
Bytes need(const Request&, const Device&);

// Returns whether it is a name like "a" or "train-7": [a-z0-9][a-z0-9-]{0,62}. A name becomes a file, a
// cgroup and a CDI device.
bool is_name(std::string_view);

}  // namespace carve
