// A node's advertisement in the cluster: its devices and settings (annotation carve.dev/devices), its totals
// (capacity and allocatable), its label and its conditions. Pure: the input is the state of the agent, the
// node's object and the runtime; the output is what the node should have.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/setting.h"
#include "kubernetes/api/answers.h"
#include "kubernetes/format/node_devices.h"
#include "kubernetes/format/node_ledger.h"
#include "kubernetes/node/rules/label_settings.h"
#include "kubernetes/node/rules/runtime_capability.h"
#include "wire/api/agent_report.h"

namespace carve::kubernetes::node {

inline constexpr const char* node_label = "carve.dev/node";  // Its value is the node's access: "extender".
inline constexpr const char* memory_resource = "carve.dev/memory";    // Bytes.
inline constexpr const char* compute_resource = "carve.dev/compute";  // Percent of one device.
// kubernetes.md 2: with native-burst-share shares are weights, up to 100 for each of a device's slices.
inline constexpr unsigned compute_of_device = 100, compute_of_weights = 1600;

struct HostFacts {
  std::string boot;
  uint64_t cpu_milli = 0;
  uint64_t memory_bytes = 0;
};

// Totals that kubelet checks when it admits pods.
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
  std::optional<api::AgentReport> agent;  // No value if it does not respond.
  std::string agent_problem;              // Why it does not.
  Result<LabelSettings, std::string> desired;
  RuntimeCapability runtime;
  HostFacts host;
  kubernetes::ObjectsByUid pods;      // This node's, by uid.
  bool has_other_plugin = false;      // nvidia.com/gpu is allocatable here too.
  kubernetes::NodeLedger drift = {};  // The ledger's differences that last.
};

struct Advertisement {
  bool is_known = false;             // If false, the agent has not reported and only the conditions count.
  std::optional<std::string> label;  // For carve.dev/node. No value if the node takes no pod with a slice.
  kubernetes::NodeDevices devices;
  kubernetes::NodeLedger drift;
  Totals totals;
  std::vector<Condition> conditions;
};

Advertisement advertise(const AdvertisementInput&);

// Returns the amounts that the annotations of these pods hold on the node. The totals never fall below them,
// because kubelet counts them when it admits its pods again after a restart.
Totals held_totals(const kubernetes::ObjectsByUid& pods, const std::string& node,
                   const std::vector<api::Device>&);

// The node's mode is stored as a label of the agent, so it survives a restart (core/setting.h).
Setting<NodeMode> mode_of(const api::AgentReport&, const LabelSettings&);

// Returns the change to send to the agent, or no value if it follows the labels already.

std::optional<api::NodeChange> agent_change(const api::AgentReport&, const LabelSettings&);

}  // namespace carve::kubernetes::node
