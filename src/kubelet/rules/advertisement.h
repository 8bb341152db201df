// What a node says of itself in the cluster: its devices and settings (annotation carve.dev/devices), its
// totals (capacity and allocatable), its label and its conditions. Pure: what the agent, the node's object
// and the runtime say, in; what the node should have, out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/setting.h"
#include "kube/answers.h"
#include "kubelet/rules/node_wishes.h"
#include "kubelet/rules/runtime_capability.h"
#include "wire/api/device.h"
#include "wire/api/slice.h"
#include "wire/kube/node_devices.h"
#include "wire/kube/node_ledger.h"

namespace carve::kubelet {

inline constexpr const char* node_label = "carve.dev/node";  // Its value is the node's way: "extender".
inline constexpr const char* memory_resource = "carve.dev/memory";    // Bytes.
inline constexpr const char* compute_resource = "carve.dev/compute";  // Percent of one device.
// kubernetes.md 2: with native-burst-share shares are weights, up to 100 for each of a device's slices.
inline constexpr unsigned compute_of_device = 100, compute_of_weights = 1600;

// What the agent says.
struct AgentReport {
  std::string simulated;  // "a10x2"; empty: real devices.
  api::Node node;
  std::vector<api::Device> devices;
  std::vector<std::string> links;
  std::vector<api::Slice> slices;
};

struct HostFacts {
  std::string boot;
  uint64_t cpu_milli = 0;
  uint64_t memory_bytes = 0;
};

// Totals that kubelet counts against pods.
struct Totals {
  uint64_t memory_bytes = 0;
  uint64_t compute_percent = 0;

  friend bool operator==(const Totals&, const Totals&) = default;
};

struct Condition {
  std::string type;
  bool is_true = false;
  std::string reason;  // One word.
  std::string message;

  friend bool operator==(const Condition&, const Condition&) = default;
};

inline constexpr const char* ready_condition = "CarveReady";
inline constexpr const char* pending_condition = "CarveSettingPending";
inline constexpr const char* no_cdi_reason = "NoCdi";

struct AdvertisementInput {
  std::string node;
  std::optional<AgentReport> agent;  // None: it does not answer.
  std::string agent_problem;         // Why not.
  Result<NodeWishes, std::string> wishes;
  RuntimeCapability runtime;
  HostFacts host;
  kube::ObjectsByUid pods;        // This node's, by uid.
  bool has_other_plugin = false;  // nvidia.com/gpu is allocatable here too.
  kube::NodeLedger drift = {};    // What lasts of the ledger's differences.
};

struct Advertisement {
  bool is_known = false;             // The agent has said what there is; otherwise the conditions alone hold.
  std::optional<std::string> label;  // Of carve.dev/node; none: the node takes no pod with a slice.
  kube::NodeDevices devices;
  kube::NodeLedger drift;
  Totals totals;
  std::vector<Condition> conditions;
};

Advertisement advertise(const AdvertisementInput&);

// Returns what the annotations of these pods hold on the node. Totals never fall below it, because kubelet
// counts them when it admits its pods again after a restart.
Totals held_totals(const kube::ObjectsByUid& pods, const std::string& node, const std::vector<api::Device>&);

// The node's mode is stored as a label of the agent, so that a restart keeps it (core/setting.h).
Setting<kube::NodeMode> mode_of(const AgentReport&, const NodeWishes&);

// Returns what the agent is to be told; no value: it follows the labels already.

std::optional<api::NodeChange> agent_change(const AgentReport&, const NodeWishes&);

}  // namespace carve::kubelet
