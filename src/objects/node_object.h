// kind: Node. A machine with devices, which an agent serves. The controller has one for each --node of its
// command line. Labels are in metadata.labels, in Carve's own terms (dialects/label_synonyms.h).
#pragma once

#include <optional>

#include "core/device_readings.h"
#include "core/enforcement.h"
#include "core/node_phase.h"
#include "core/reachability.h"
#include "core/word.h"
#include "objects/object.h"
#include "wire/api/json.h"

namespace carve::objects {

struct NodeSpec {
  std::string pool;           // The node pool that it belongs to; empty if none.
  std::string instance_type;  // "ml.gu7i.c8m30.1-gu30"; empty if unknown.
  bool schedulable = true;    // False if the node accepts no new slices.
  std::string cordoned;       // "root since 2026-11-21T09:00:00.000Z", if it is not schedulable.
  bool stopped = false;       // By `carve node stop`: no new slices until `carve node start`.
  bool restarting = false;    // By `carve node restart`: no new slices until the running ones have ended.
  bool draining = false;      // By `carve drain`, until it is schedulable: its replicas move to other nodes.
};

// A setting that becomes effective when no slice blocks it. Empty strings mean that it is unknown.
struct NodeSetting {
  std::string desired;                  // The value that an operator has set.
  std::string effective;                // The value that the agent applies.
  std::vector<std::string> blocked_by;  // Names of slices.
};

struct GpuMemUnits {
  std::string unit;        // "1GiB" or "128MiB"
  uint64_t capacity = 0;   // The whole units of the devices.
  uint64_t allocated = 0;  // The units held by slices, each device rounded up.
};

struct NodeDeviceStatus {
  uint32_t index = 0;            // NVML's index.
  std::string uuid;              // NVML's UUID.
  std::string name;              // "NVIDIA A10"
  DeviceHealth health;           // As its driver reports it.
  uint64_t usable_bytes = 0;     // Memory that slices may get.
  uint64_t free_bytes = 0;       // Memory that no slice was promised.
  uint64_t context_bytes = 0;    // 0 if not measured.
  uint32_t slices = 0;           // Number of slices.
  uint32_t isolated_slices = 0;  // Slices with limited memory.
  uint32_t max_slices = 0;       // The most slices with limited memory that it can have; 0 if unknown.
  uint32_t free_share_bp = 0;    // Part of its compute that no slice was promised.
  std::string exclusive_to;      // The slice that holds the whole device, or empty.
  std::string policy;            // The effective policy; empty if unknown.
  bool migrates = false;         // Managed memory may exceed the device's memory.
};

// A slice of the node.
struct NodeSliceStatus {
  std::string name;      // Name of the slice.
  std::string kind;      // "service"; empty for `carve run` and `carve slice`.
  std::string workload;  // Name of the object.
};

// The controller's view of the agent's answers. It is part of API responses and is not stored.
struct NodeAgentStatus {
  std::string socket;                                 // Path of the agent's API socket.
  Reachability reachability = Reachability::unknown;  // "unknown", "reachable", "unreachable"
  std::string problem;                                // Why it is unreachable, otherwise empty.
  std::string version;                                // Empty if the agent has never answered.
  std::string started_at;     // In the form of metadata's times; empty if the agent has never answered.
  std::string first_seen_at;  // The first answer to any controller with this database.
  std::string last_seen_at;   // The last answer.
};

struct NodeStatus {
  Word<NodePhase> state;                    // "Starting", "Running", "Stopped"
  std::string started_at;                   // When it became Running.
  uint32_t ready_in_seconds = 0;            // For a starting node.
  uint64_t cpu_milli = 0;                   // Thousandths of a core of the machine; 0 if not known yet.
  uint64_t memory_bytes = 0;                // Memory of the machine.
  uint32_t gpus = 0;                        // Number of devices.
  GpuMemUnits gpu_mem_units;                // Memory in whole units.
  NodeSetting policy;                       // Compute policy.
  bool has_policy_per_slice = false;        // Slices of one device may follow different policies.
  bool contexts_in_slice = false;           // Contexts are charged to slices.
  bool admits_best_effort = true;           // Slices without a share are admitted next to those with one.
  NodeSetting mode;                         // Isolation mode.
  NodeSetting memory_unit;                  // Unit of memory requests.
  std::string placement;                    // "binpack" or "spread"
  std::vector<std::string> removed_labels;  // System labels that wait for a restart of the node.
  bool is_initialised = false;              // It has the labels of its pool.
  std::vector<std::string> taints;          // "KEY=VALUE:EFFECT"
  uint32_t slices = 0;                      // Number of slices.
  std::vector<NodeSliceStatus> slice_list;  // The slices.
  std::vector<NodeDeviceStatus> devices;    // One entry per device.
  std::vector<std::string>
      links;  // Links between the devices, a line for each, as `nvidia-smi topo -m` prints
              // it. Empty if unknown.
  std::vector<Condition> conditions;     // The current condition of each type.
  std::optional<NodeAgentStatus> agent;  // Absent before the agent has answered for the first time.
};

struct Node {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  NodeSpec spec;
  NodeStatus status;
};

// A document of kind Node that a user applies: its values are set, other values stay. It may contain the
// fields that verbs set (carve cordon, carve node stop), as `carve get -o yaml` prints them.
struct NodeDocumentSpec {
  std::optional<std::string> pool;
  std::optional<std::string> instance_type;
  std::optional<bool> schedulable;
  std::optional<std::string> cordoned;
  std::optional<bool> stopped;
  std::optional<bool> restarting;
  std::optional<bool> draining;
};
struct NodeDocument {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  NodeDocumentSpec spec;
  NodeStatus status;
};

// PATCH /v1/nodes/NAME changes the given fields. A label with the value null is removed.
struct NodePatchMetadata {
  std::map<std::string, std::string> labels;
};
struct NodePatchSpec {
  std::optional<std::string> pool;
  std::optional<std::string> instance_type;
  std::optional<bool> schedulable;
};
struct NodePatch {
  NodePatchMetadata metadata;
  NodePatchSpec spec;
};

struct NodeList {
  std::vector<Node> items;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::NodeSpec)
CARVE_DECLARE_DOCUMENT(objects::NodeStatus)
CARVE_DECLARE_DOCUMENT(objects::Node)
CARVE_DECLARE_DOCUMENT(objects::NodeDocument)
CARVE_DECLARE_DOCUMENT(objects::NodePatchSpec)
CARVE_DECLARE_DOCUMENT(objects::NodePatch)
CARVE_DECLARE_DOCUMENT(objects::NodeList)
