// Documents of the API, version 1: the agent and its node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/enforcement.h"
#include "core/slice.h"
#include "wire/api/json.h"

namespace carve::api {

// GET /v1/version
struct Version {
  std::string version;    // "0.3.0"
  uint32_t pid = 0;       // The agent's pid.
  std::string simulated;  // The set's specification ("a10x2"). Empty on real devices.
  std::string socket;     // Path of the API's socket.
  std::string state;      // Directory of the ledger.
  uint64_t started_ns = 0;
  uint32_t layout = 0;  // Version of the shared memory layout (wire/shm).
};

// GET /v1/processes/PID
struct ProcessSlice {
  std::string slice;  // The slice in which the process runs, or empty.
};

// The compute policy of a device, or of the node. A change may take effect later (core/setting.h).
struct PolicySetting {
  Policy desired = Policy::fixed_share;
  std::optional<Policy> effective;      // Absent if the node's devices differ.
  std::vector<std::string> blocked_by;  // Names of slices. Empty if the two are equal.
};

// GET /v1/node, PATCH /v1/node with NodeChange
struct Node {
  PolicySetting policy;            // For all devices.
  bool policy_per_slice = false;   // Slices of one device may follow different policies.
  bool admit_best_effort = false;  // Slices without a share are admitted next to enforced ones.
  bool overcommit_compute = false;
  bool contexts_in_slice = true;  // Contexts are charged to slices; otherwise to the device's reserved bytes.
  MemoryUnit memory_unit = MemoryUnit::gib;          // The unit of an integer memory request.
  MemoryUnit desired_memory_unit = MemoryUnit::gib;  // Effective after the last slice that blocks it ends.
  std::vector<std::string> memory_unit_blocked_by;   // Names of slices that were requested in units.
  Bookkeeper bookkeeper = Bookkeeper::agent;         // With kubernetes, only root creates slices.
  std::string grants_refused;        // The message that refuses new slices. Empty if they are granted.
  bool starting = false;             // No slice is granted yet.
  uint64_t spill_limit_bytes = 0;    // Host memory for the spill of all slices (--spill-limit).
  uint64_t spill_granted_bytes = 0;  // Granted to live slices.
  uint64_t spill_free_bytes = 0;
  std::map<std::string, std::string> labels;
  Enforcement enforcement{enforced_by_guest, "", {}};  // Of memory limits; the reason names what is missing.
};

struct NodeChange {
  std::optional<Policy> policy;
  std::optional<MemoryUnit> memory_unit;
  bool when_free = false;                     // Defer a change of the unit that running slices block.
  std::optional<std::string> refuse_grants;   // The message. Empty means that slices are granted again.
  std::map<std::string, std::string> labels;  // To set.
  std::vector<std::string> removed_labels;    // Keys.

  bool operator==(const NodeChange&) const = default;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::Version)
CARVE_DECLARE_DOCUMENT(api::ProcessSlice)
CARVE_DECLARE_DOCUMENT(api::Node)
CARVE_DECLARE_DOCUMENT(api::NodeChange)
