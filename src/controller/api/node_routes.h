// The routes of nodes. Only operators change nodes. The nodes come from the controller's command line: they
// are not created or deleted here.
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

// Returns the node with the values of a document of kind Node; other values stay.
Outcome<Object> planned_node(const Call&, const Submission&);
// Returns the warnings about a document of kind Node, including the workloads that its labels exclude from
// the node.
std::vector<std::string> node_warnings(const Call&, const Submission&);
// Returns the response that rejects a node's label or pool in the documents; no value if they are valid.
std::optional<http::Response> refused_by_nodes(const Call&, const std::vector<Submission>&);

}  // namespace carve::controller
