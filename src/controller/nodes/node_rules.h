// Nodes and node pools as objects: what the status of each says, and what a node's agent is asked to change.
// All functions are pure: objects and the agents' answers go in, values come out. On which nodes a slice is
// requested: slice_forecast.h.
//
// A node's labels are in its metadata, in our words. The agent follows them: the controller sets the agent's
// policy and memory unit, and the agent says when they become effective (core/setting.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/objects/object_registry.h"
#include "wire/api/device.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"
#include "wire/objects/node_object.h"
#include "wire/objects/pool_object.h"
#include "workload/host_fit.h"
#include "workload/pool.h"

namespace carve::controller {

using Pointer = ObjectRegistry::Pointer;

// What an agent answered last.
struct NodeObservation {
  int64_t answered_ns = 0;  // UTC; before the first answer, the controller's start.
  int64_t agent_started_ns = 0;
  bool has_answered = false;  // This controller.
  api::Node settings;
  std::vector<api::Device> devices;
  std::vector<api::Slice> slices;
  workload::HostResources host;  // What its machine has.
};

ObjectKey node_key(const std::string& name);
ObjectKey pool_key(const std::string& name);

// Reads what the controller stored. An empty object has the defaults.
objects::NodeSpec node_spec(const Object&);
objects::NodeStatus node_status(const Object&);
objects::PoolSpec pool_spec(const Object&);

// Returns the status of a node after an answer, or after silence. A start is expected to take
// `expected_start_ns`.
objects::NodeStatus observed_status(const Object& node, const NodeObservation&, int64_t now_ns,
                                    int64_t expected_start_ns = workload::default_expected_start_ns);

// Returns the labels that a new node takes over from its agent, in our words. Labels that are wrong are left.
std::map<std::string, std::string> agent_labels(const api::Node&);

// Returns the sentence with which the node refuses slices; empty: it grants them.
std::string refusal_of(const Object& node);

// Returns what the agent is asked to change, so that it follows the node's labels and spec; no value if it
// follows already.
std::optional<api::NodeChange> agent_change(const Object& node, const NodeObservation&);

// Returns whether a restart of the node has come to its end: no slice runs, and what was desired is
// effective.
bool has_restarted(const Object& node, const NodeObservation&);

// Returns the taints that the node has from its pool.
std::set<workload::Taint> taints_of(const Object& node);

// Returns a node as workload/pool.h compares it.
workload::PoolNode pool_node(const Object& node, int64_t now_ns);
// Returns the nodes of the pool.
std::vector<workload::PoolNode> nodes_of(const std::string& pool, const std::vector<Pointer>& nodes,
                                         int64_t now_ns);

// Returns the checks of GPU slicing for the pool.
objects::Slicing slicing_of(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns);
objects::PoolStatus pool_status(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns);

// Returns why no node of the pool (empty: any pool) ever has the policy, as a sentence; empty: one has it, or
// the policy of one is not known, or slices of one device may follow different policies.
std::string policy_problem(const std::string& policy, const std::string& pool,
                           const std::vector<Pointer>& nodes);

// Returns why no slice may be created in the pool, as a sentence; empty: it may.
std::string slicing_problem(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns);

}  // namespace carve::controller
