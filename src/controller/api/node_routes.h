// The routes of nodes. A change is the operators'. A node is one of the controller's command line: it is not
// created or deleted here.
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

// Returns the node with what a document of kind Node has; all else stays.
Outcome<Object> planned_node(const Call&, const Submission&);
// Returns the answer that refuses a label or the pool of a node among the documents; no value: they may be
// set.
std::optional<http::Response> refused_by_nodes(const Call&, const std::vector<Submission>&);

}  // namespace carve::controller
