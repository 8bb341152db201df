// Documents of the API, version 1: the agent and its node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/slice.h"

namespace carve::api {

// GET /v1/version
struct Version {
  std::string version;    // "0.2.0"
  uint32_t pid = 0;       // Of the agent.
  std::string simulated;  // The set's specification ("a10x2"); empty on real devices.
  std::string socket;     // Path of the API's socket.
  std::string state;      // Directory of the ledger.
  uint64_t started_ns = 0;
  uint32_t layout = 0;  // Version of the shared memory layout (wire/shm).
};

// GET /v1/processes/PID
struct ProcessSlice {
  std::string slice;  // The name of the slice in which the process runs; empty if it is in none.
};

// The compute policy of a device, or of the node. It may take effect later than it is changed
// (core/setting.h).
struct PolicySetting {
  Policy desired = Policy::fixed_share;
  std::optional<Policy> effective;      // Absent: it differs between the node's devices.
  std::vector<std::string> blocked_by;  // Names of slices; empty if the two are equal.
};

// GET /v1/node, PATCH /v1/node with NodeChange
struct Node {
  PolicySetting policy;            // Of all devices.
  bool policy_per_slice = false;   // Slices of one device may follow different policies.
  bool admit_best_effort = false;  // Slices without a share are admitted beside enforced ones.
  bool overcommit_compute = false;
  bool contexts_in_slice = true;  // Contexts are charged to slices; otherwise to the device's reserved bytes.
  MemoryUnit memory_unit = MemoryUnit::gib;          // What an integer memory request counts.
  MemoryUnit desired_memory_unit = MemoryUnit::gib;  // From the end of the last slice on that blocks it.
  std::vector<std::string> memory_unit_blocked_by;   // Names of slices that were requested in units.
  Bookkeeper bookkeeper = Bookkeeper::agent;         // With kubernetes, root alone creates slices.
  std::string grants_refused;  // Why no new slice is granted, as a sentence; empty: slices are granted.
  bool starting = false;       // No slice is granted yet.
  std::map<std::string, std::string> labels;
};

struct NodeChange {
  std::optional<Policy> policy;
  std::optional<MemoryUnit> memory_unit;
  bool when_free = false;                     // A unit that running slices block becomes effective later.
  std::optional<std::string> refuse_grants;   // The sentence; empty: slices are granted again.
  std::map<std::string, std::string> labels;  // To set.
  std::vector<std::string> removed_labels;    // Keys.
};

}  // namespace carve::api
