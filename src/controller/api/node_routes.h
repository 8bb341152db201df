// The routes of nodes. A change is the operators'. A node is one of the controller's command line: it is not
// created or deleted here.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response list_nodes(const Call&);
http::Response get_node(const Call&);
http::Response patch_node(const Call&);
http::Response start_node(const Call&);
http::Response stop_node(const Call&);
http::Response restart_node(const Call&);
http::Response end_node_slices(const Call&);

}  // namespace carve::controller
