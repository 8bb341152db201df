// The routes of nodes. Only operators may change nodes. The nodes come from the controller's command line, so
// they cannot be created or deleted here.
#pragma once

#include <optional>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

http::Response list_nodes(const Call&);
http::Response get_node(const Call&);
http::Response patch_node(const Call&);
http::Response start_node(const Call&);
http::Response stop_node(const Call&);
http::Response restart_node(const Call&);
http::Response drain_node(const Call&);
http::Response end_node_slices(const Call&);

// Returns the node's object together with the last known state of its agent.
Object with_agent(Object node, const NodeObservation&);

// Returns the node with the values from a document of kind Node; fields that the document lacks keep their
// values.
Outcome<Object> planned_node(const Call&, const Submission&);
// Returns the warnings about a document of kind Node, including one for each workload that its labels would
// keep off the node.
std::vector<std::string> node_warnings(const Call&, const Submission&);
// Returns the response that rejects a label or the pool of a node in the documents; no value if they are
// valid.
std::optional<http::Response> refused_by_nodes(const Call&, const std::vector<Submission>&);

}  // namespace carve::controller
