// kubectl carve top: what devices and slices use now, as the agents of the nodes measure it. Pure; verbs.cc
// calls the agents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/cli/table.h"
#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::kubernetes::cli {

// The pod of a node's agent.
struct AgentPod {
  std::string node;
  std::string name;     // The pod's. Empty if there is none.
  std::string problem;  // Why it cannot be called. Empty if it can.
};
// Returns a row for each node of the list, by name. `pods_json` has the agents' pods. Both are lists from the
// API server. Fails with a message.
Result<std::vector<AgentPod>, std::string> agents_of(std::string_view nodes_json, std::string_view pods_json);

// What `carve top -o json` prints on a node.
struct AgentTop {
  std::vector<api::Device> devices;
  std::vector<api::Slice> slices;
};
struct AgentAnswer {
  std::string node;
  Result<std::string, std::string> text;  // Fails with the reason.
};

struct UsedDevice {
  std::string node;
  uint32_t device = 0;
  std::string model;
  Bytes memory_used, memory;  // As the driver reports it; usable.
  uint32_t utilization_percent = 0;
  uint32_t slices = 0;
  std::string health;
};
// A slice's part of one device.
struct UsedPart {
  std::string namespace_, pod, container;  // Empty if the slice belongs to no pod.
  std::string slice;
  std::string node;
  uint32_t device = 0;
  Bytes memory_charged, memory_driver, memory;  // The last one is the quota.
  uint32_t compute_percent = 0;                 // Granted. 0 if it has no share.
  // In the last second. No value if shares are not enforced here.
  std::optional<uint32_t> compute_used_percent;
};
struct SilentNode {
  std::string node, reason;
};
struct TopList {
  std::vector<UsedDevice> devices;
  std::vector<UsedPart> slices;
  std::vector<SilentNode> silent;  // Nodes that did not answer.
};
// An empty `name_space` means all pods.
TopList top_rows(const std::vector<AgentAnswer>&, const std::string& name_space);
Table device_table(const TopList&);
Table slice_table(const TopList&, Form);

}  // namespace carve::kubernetes::cli
