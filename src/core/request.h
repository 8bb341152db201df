// A request before placement. validated() returns only consistent requests; place/ decides whether a request
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
#include "core/part.h"
#include "core/slice.h"

namespace carve {

// The three forms of a memory request. Each of them determines an amount per device.
struct PerDevice {
  Bytes memory;
};
struct InTotal {  // Divided equally among the devices.
  Bytes memory;
};
struct OfUsable {  // A part of each device's usable memory, rounded down to whole MiB.
  Share part;
};

// The amounts of one device, if the devices' amounts differ.
struct PartRequest {
  std::variant<PerDevice, OfUsable> memory;
  Share share;  // 0 if no share was requested.
};

struct Request {
  std::string name;  // If empty, the agent chooses one.
  std::string request_id;
  uint32_t owner = 0;
  std::variant<std::monostate, PerDevice, InTotal, OfUsable> memory;
  Share share;  // On each device; 0 if no share was requested.
  Bytes spill;  // Bytes per device in host memory, beyond the quota.
  unsigned devices = 1;
  // The amounts of each device if they differ, in the order of the program's devices. They replace `memory`,
  // `share` and `placed`. Empty if all devices have equal amounts, which are in `memory` and `share`.
  std::vector<PartRequest> parts;
  bool exclusive = false;
  Lifetime lifetime = Lifetime::processes;
  std::optional<Uuid> device;  // The only device allowed.
  std::vector<Uuid> among;     // The allowed devices of a request for several. Empty means all.
  // The parts if they were decided elsewhere. They replace `memory`, `share`, `device` and `strategy`. Empty
  // if placement decides. Parts of an exclusive request have no share, and either no memory or all that is
  // usable.
  std::vector<PlacedPart> placed;
  std::optional<Strategy> strategy;
  std::optional<Isolation> isolation;  // If no value, isolated() decides.
  std::optional<Policy> policy;        // If no value, the device's policy.
  LatencyClass latency = LatencyClass::batch;
  std::string account;  // The account that pays.

  // The next fields are for placement on one of several nodes.
  std::vector<std::string> models;  // Allowed models, as the driver names them. Empty means any.
  uint32_t cpu_milli = 0;           // CPU of the node, in thousandths of a core.
  Bytes host_memory;                // Memory of the node.
  std::string application;          // Its replicas are placed on different devices (place/engine.h).
  std::map<std::string, std::string> labels;
  MemoryUnits memory_units;           // The form in which `memory` was given, if it was in units.
  Holder holder;                      // The container or the claim that the slice is for.
  std::optional<ContainerSlot> slot;  // Where the container attaches.

  // Returns the isolation of the slice: the requested isolation, or otherwise as much as the request has
  // limits for.
  Isolation isolated() const { return isolation.value_or(default_isolation(first_share())); }
  // Returns the share on each device, or with parts, the share on the first device. Either all parts have a
  // share or none has one.
  Share first_share() const {
    return !parts.empty() ? parts.front().share : placed.empty() ? share : placed.front().share;
  }
};

inline constexpr unsigned max_isolated_slices = 16;  // Per device, for slices with isolated memory.
inline constexpr unsigned max_allowed_models = 64;
inline constexpr Bytes min_memory = 1_MiB;

// Returns the request, or the first rule that it violates.
Outcome<Request> validated(Request);

// Returns the bytes that a part of the request needs on this device. Parts are numbered from 0. The request
// must have been validated.
Bytes need(const Request&, size_t part, const Device&);
// Returns the share of a part.
Share share_of(const Request&, size_t part);

// Returns whether it is a valid name like "a" or "train-7": [a-z0-9][a-z0-9-]{0,62}. The name is used for a
// file, a cgroup and a CDI device.
bool is_name(std::string_view);

}  // namespace carve
