// Nodes and node pools as objects: the status of each, and the changes requested from a node's agent. All
// functions are pure: objects and the agents' answers go in, values come out. slice_forecast.h chooses the
// nodes on which a slice is requested.
//
// A node's labels are in its metadata, in Carve's own terms. The agent follows them: the controller sets the
// agent's policy and memory unit, and the agent reports when they become effective (core/setting.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/objects/object_registry.h"
#include "controller/store/stored_records.h"
#include "objects/node_object.h"
#include "objects/pool_object.h"
#include "wire/api/agent_report.h"
#include "workload/host_fit.h"
#include "workload/pool.h"

namespace carve::controller {

using Pointer = ObjectRegistry::Pointer;

// The state of a node as the controller knows it, with the last answer of its agent.
struct NodeObservation {
  NodeRecord record;  // Its row of the database: the last answer to any controller that used it.
  Reachability reachability = Reachability::unknown;
  std::string problem;        // Why it is unreachable, as a message, or empty.
  int64_t answered_ns = 0;    // UTC; before the first answer, the controller's start.
  bool has_answered = false;  // To this controller.
  api::AgentReport report;
  workload::HostResources host;  // Resources of its machine.

  int64_t agent_started_ns() const { return static_cast<int64_t>(report.version.started_ns); }
};
// An observation never changes, so threads may share it.
using NodeObservationPointer = std::shared_ptr<const NodeObservation>;

ObjectKey node_key(const std::string& name);
ObjectKey pool_key(const std::string& name);

// An empty object has the defaults.
inline const objects::NodeSpec& node_spec(const Object& node) { return node.spec.as<objects::NodeSpec>(); }
inline const objects::NodeStatus& node_status(const Object& node) {
  return node.status.as<objects::NodeStatus>();
}
inline const objects::PoolSpec& pool_spec(const Object& pool) { return pool.spec.as<objects::PoolSpec>(); }

// Returns the status of a node after an answer, or after a missing one. A start is expected to take
// `expected_start_ns`.
objects::NodeStatus observed_status(const Object& node, const NodeObservation&, int64_t now_ns,
                                    int64_t expected_start_ns = workload::default_expected_start_ns);

// Returns the labels that a new node takes over from its agent, in Carve's own terms. Invalid labels are left
// out.
std::map<std::string, std::string> agent_labels(const api::Node&);

// Returns the message with which the node rejects slices, or an empty string if it grants them.
std::string refusal_of(const Object& node);

// Returns the change requested from the agent so that it follows the node's labels and spec, or no value if
// it already does.
std::optional<api::NodeChange> agent_change(const Object& node, const NodeObservation&);

// Returns whether a restart of the node is complete: no slice runs, and the desired settings are effective.
bool has_restarted(const Object& node, const NodeObservation&);

// Returns the taints that the node gets from its pool.
std::set<workload::Taint> taints_of(const Object& node);

// Returns a node in the form that workload/pool.h compares.
workload::PoolNode pool_node(const Object& node, int64_t now_ns);
// Returns the nodes of the pool.
std::vector<workload::PoolNode> nodes_of(const std::string& pool, const std::vector<Pointer>& nodes,
                                         int64_t now_ns);

// Returns the checks of GPU slicing for the pool.
objects::Slicing slicing_of(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns);
objects::PoolStatus pool_status(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns);

// Returns why no node of the pool ever has the policy that the user's `field` needs; an empty pool means any.
// Returns an empty string if a node has the policy, if the policy of one is unknown, or if slices of one
// device may follow different policies.
std::string policy_problem(const std::string& policy, const std::string& pool,
                           const std::vector<Pointer>& nodes, const std::string& field);

// Returns why no slice may be created in the pool, as a message; empty if slices may be created.
std::string slicing_problem(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns);

}  // namespace carve::controller
