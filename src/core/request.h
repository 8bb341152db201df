// What somebody asks for, before anybody looked for a place. A request that passes validated() is sound in
// itself; whether it fits is place/'s question.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/failure.h"
#include "core/slice.h"

namespace carve {

// The three ways of saying how much memory, each for one device in the end.
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
  std::string name;  // Empty: the agent finds one.
  std::string request_id;
  uint32_t owner = 0;
  std::variant<std::monostate, PerDevice, InTotal, OfUsable> memory;
  Share share;  // Of each device; 0: none asked for.
  Bytes spill;  // Per device, in host memory, beyond the quota: managed oversubscription.
  unsigned devices = 1;
  bool exclusive = false;
  bool persistent = false;
  std::optional<Uuid> device;  // This one, no other.
  std::optional<Strategy> strategy;
  Isolation isolation = Isolation::memory;
  std::optional<Policy> policy;  // None: the device's.
  LatencyClass latency = LatencyClass::batch;

  // For whoever chooses among machines.
  std::vector<std::string> models;  // Allowed ones, as the driver names them; empty: any.
  uint32_t cpu_milli = 0;           // Of the node, in thousandths of a core.
  Bytes host_memory;                // Of the node.
  std::string account;              // Who pays.
  std::string application;          // Its replicas are kept apart (place/engine.h).
  std::vector<std::pair<std::string, std::string>> labels;
};

inline constexpr unsigned max_slice_devices = 16;  // As many as a slice's pages describe (wire/shm/layout.h).
inline constexpr unsigned max_isolated_slices = 16;  // On one device where memory is isolated.
inline constexpr unsigned max_allowed_models = 64;
inline constexpr unsigned max_labels = 64;
inline constexpr unsigned max_label_bytes = 253;  // Key, value, model, account or application: in bytes.
inline constexpr Bytes min_memory = 1_MiB;

// The request, or the first rule that it breaks.
Outcome<Request> validated(Request);

// What the request takes of this device. Only for a validated request.
Bytes need(const Request&, const Device&);

// "a", "train-7": [a-z0-9][a-z0-9-]{0,62}, since a name becomes a file, a cgroup and a CDI device.
bool is_name(std::string_view);

}  // namespace carve
