// A node's advertisement in the cluster: its devices and settings (annotation carve.dev/devices), its totals
// (capacity and allocatable), its label and its conditions. Pure: computes the desired contents of the node's
// object from the state of the agent, the object and the runtime.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/setting.h"
#include "kubernetes/api/answers.h"
#include "kubernetes/format/node_devices.h"
#include "kubernetes/format/node_ledger.h"
#include "kubernetes/format/node_reader.h"
#include "kubernetes/node/rules/label_settings.h"
#include "kubernetes/node/rules/runtime_capability.h"
#include "wire/api/agent_report.h"

namespace carve::kubernetes::node {

inline constexpr const char* node_label = "carve.dev/node";           // Its value is the Way in effect.
inline constexpr const char* memory_resource = "carve.dev/memory";    // Bytes.
inline constexpr const char* compute_resource = "carve.dev/compute";  // Percent of one device.
// With native-burst-share, shares are weights, and each of a device's slices may have up to 100
// (kubernetes.md 2).
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
  std::optional<api::AgentReport> agent;  // No value if the agent does not respond.
  std::string agent_problem;              // Why the agent does not respond.
  Result<LabelSettings, std::string> desired;
  RuntimeCapability runtime;
  HostFacts host;
  kubernetes::ObjectsByUid pods;      // The pods of this node, by uid.
  bool has_other_plugin = false;      // Whether nvidia.com/gpu is also allocatable here.
  std::string dra_problem = {};       // Why kubelet rejected the DRA driver. Empty if it did not.
  kubernetes::NodeLedger drift = {};  // The persistent differences of the ledger.
  std::optional<kubernetes::NodeReader> reader = {};  // No value if the port of the records is not served.
};

struct Advertisement {
  bool is_known = false;             // If false, only the conditions and `reader` are valid.
  std::optional<std::string> label;  // Value of carve.dev/node; absent if it takes no slice.
  kubernetes::NodeDevices devices;
  kubernetes::NodeLedger drift;
  std::optional<kubernetes::NodeReader> reader;
  Totals totals;
  std::vector<Condition> conditions;
};

Advertisement advertise(const AdvertisementInput&);

// Returns the amounts that these pods hold on the node according to their annotations. The totals must not
// fall below them, because kubelet counts them when it admits its pods again after a restart.
Totals held_totals(const kubernetes::ObjectsByUid& pods, const std::string& node,
                   const std::vector<api::Device>&);

// The agent stores the node's mode as a label, so the mode survives a restart (core/setting.h).
Setting<NodeMode> mode_of(const api::AgentReport&, const LabelSettings&);

// Returns the mode that the agent has stored.
NodeMode stored_mode(const api::AgentReport&);

// The way in effect is that of the live slices' holders, so it changes when the last of them has ended.
Setting<Way> way_of(const api::AgentReport&, const LabelSettings&);

// Returns the change to send to the agent, or no value if the agent already follows the labels.
std::optional<api::NodeChange> agent_change(const api::AgentReport&, const LabelSettings&);

}  // namespace carve::kubernetes::node
