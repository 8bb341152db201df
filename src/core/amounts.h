// The requested amounts on the GPUs of one node, as numbers. Text is converted to Amounts where it enters:
// options of the CLI, documents, limits and annotations of pods. Only request_of() converts Amounts to a
// Request.
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
  std::optional<uint32_t> memory_units;        // On each device, in the memory unit of the node.
  std::optional<uint64_t> total_memory_bytes;  // On all devices together, divided equally.
  std::optional<uint32_t> share_bp;            // Compute share of each device. Absent means no share.
  uint64_t spill_bytes = 0;                    // On each device, in host memory beyond the quota.
  uint32_t devices = 1;                        // Number of different devices.
  bool exclusive = false;                      // Whole devices.
  std::optional<Isolation> isolation;          // If absent, the node's, or as much as the amounts allow.
  std::optional<Policy> policy;                // If absent, the policy of the device.
  std::optional<LatencyClass> latency_class;   // If absent, batch.
  std::optional<Strategy> strategy;            // If absent, the strategy of the node.
  std::vector<std::string> models;             // Allowed models, as the driver names them. Empty means any.
  std::vector<std::string> device_uuids;       // Allowed devices. Empty means any.
  // Memory and share of each device, which replace the fields above if the devices' amounts differ. Empty if
  // all devices have equal amounts.
  std::vector<Part> parts;

  bool has_share() const;         // On any device.
  uint32_t device_count() const;  // Number of devices that the slice has.
  friend bool operator==(const Amounts&, const Amounts&) = default;
};
// In a document the amounts are fields of the enclosing object (wire/api/json.h).
constexpr void is_inlined(const Amounts&) {}

// Returns the request for these amounts on a node with this memory unit. The request includes the models, but
// not the UUIDs, because only the caller knows the devices. The caller sets the other fields of the request
// and calls validated().
Outcome<Request> request_of(const Amounts&, MemoryUnit);

}  // namespace carve
