// Synchronizes the objects of nodes and node pools with agents and users: a node's status follows its agent's
// answers, its labels follow its pool (workload/pool.h), and its agent is requested to follow its labels.
// Only the controller's loop uses it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/nodes/node_rules.h"

namespace carve::controller {

// Changes that the controller requests from an agent before it polls the agent.
struct AgentRequest {
  std::optional<api::NodeChange> change;
  std::vector<std::string> ended_slices;  // Names of slices to end.
};

class NodeSync {
 public:
  // Adds an object for each node that has none. `expected_start_ns` is how long the start of a node is
  // expected to take.
  NodeSync(ObjectRegistry&, const std::vector<std::string>& nodes, int64_t now_ns,
           int64_t expected_start_ns = workload::default_expected_start_ns);

  // Takes an agent's answer.
  void answered(const std::string& node, NodeObservationPointer);
  // Writes the changes of the nodes and pools. Called after each answer and at intervals.
  void turn(int64_t now_ns);
  // Returns the request to the node's agent.
  AgentRequest request_for(const std::string& node) const;
  // Ends the node's slices with the next request (carve node restart --force).
  void end_slices(const std::string& node) { forced_.insert(node); }

 private:
  void update_node(const std::string& name, int64_t now_ns);
  void update_pool(const Object& pool, int64_t now_ns);
  void carry_out(const workload::PoolAction&);
  template <class Edit>
  void edit(const ObjectKey&, Edit);

  ObjectRegistry& objects_;
  int64_t expected_start_ns_;
  std::map<std::string, NodeObservationPointer> seen_;  // Keyed by node, for all nodes of the command line.
  std::set<std::string> forced_;
};

}  // namespace carve::controller
