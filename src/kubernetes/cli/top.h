// kubectl carve top: the current usage of devices and slices, as measured by the agents of the nodes. Pure;
// verbs.cc calls the agents.
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
  std::string name;     // The pod's name; empty if there is no pod.
  std::string problem;  // Why it cannot be called; empty if it can.
};
// Returns one row per node of the list, sorted by name. `pods_json` contains the agents' pods. Both arguments
// are lists from the API server. Fails with a message.
Result<std::vector<AgentPod>, std::string> agents_of(std::string_view nodes_json, std::string_view pods_json);

// The output of `carve top -o json` on a node.
struct AgentTop {
  std::vector<api::Device> devices;
  std::vector<api::Slice> slices;
};
struct AgentAnswer {
  std::string node;
  Result<std::string, std::string> text;  // Fails with a message.
};

struct UsedDevice {
  std::string node;
  uint32_t device = 0;
  std::string model;
  Bytes memory_used, memory;  // Driver-reported memory in use, and usable memory.
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
  Bytes memory_charged, memory_driver, memory;  // `memory` is the quota.
  uint32_t compute_percent = 0;                 // Granted; 0 if the slice has no share.
  // Used in the last second. No value if shares are not enforced on the device.
  std::optional<uint32_t> compute_used_percent;
};
struct SilentNode {
  std::string node, reason;
};
struct TopList {
  std::vector<UsedDevice> devices;
  std::vector<UsedPart> slices;
  std::vector<SilentNode> silent;  // Nodes that did not respond.
};
// If `name_space` is empty, all pods are included.
TopList top_rows(const std::vector<AgentAnswer>&, const std::string& name_space);
Table device_table(const TopList&);
Table slice_table(const TopList&, Form);

}  // namespace carve::kubernetes::cli
