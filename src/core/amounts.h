// The requested amounts on the GPUs of one node, as numbers. Texts become Amounts at the edge: options of the
// CLI, documents, limits and annotations of pods. Only request_of() makes a Request from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/part.h"
#include "core/request.h"

namespace carve {

struct Amounts {
  // Memory: exactly one of these four, or none with `exclusive` or `parts`.
  std::optional<uint64_t> memory_bytes;        // On each device.
  std::optional<uint32_t> memory_bp;           // On each device, as a part of its usable memory.
  std::optional<uint32_t> memory_units;        // On each device, in the node's memory unit.
  std::optional<uint64_t> total_memory_bytes;  // On all devices together, divided equally.
  std::optional<uint32_t> share_bp;            // Compute of each device. Absent means no share.
  uint64_t spill_bytes = 0;                    // On each device, in host memory beyond the quota.
  uint32_t devices = 1;                        // Number of different devices.
  bool exclusive = false;                      // Whole devices.
  std::optional<Isolation> isolation;          // If absent, the node's, or else as much as the amounts allow.
  std::optional<Policy> policy;                // If absent, the device's.
  std::optional<LatencyClass> latency_class;   // If absent, batch.
  std::optional<Strategy> strategy;            // If absent, the node's.
  std::vector<std::string> models;             // Allowed models, as the driver names them. Empty means any.
  std::vector<std::string> device_uuids;       // Allowed ones. Empty means any.
  // Memory and share of each device if they differ, instead of the fields above. Empty if all devices have
  // equal amounts.
  std::vector<Part> parts;

  bool has_share() const;         // A compute share on any device.
  uint32_t device_count() const;  // Number of devices that the slice has.
  friend bool operator==(const Amounts&, const Amounts&) = default;
};
// In a document the amounts are fields of the enclosing object (wire/api/json.h).
constexpr void is_inlined(const Amounts&) {}

// Returns the request for these amounts on a node with this memory unit. It includes the models, but not the
// UUIDs, because only the caller knows the devices. The caller adds the other fields of the request and calls
// validated().
Outcome<Request> request_of(const Amounts&, MemoryUnit);

}  // namespace carve
