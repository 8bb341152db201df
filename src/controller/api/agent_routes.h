// The routes below /v1/nodes/NAME that the node's agent serves. The controller is an operator of its agents,
// so it checks the caller's rights itself: every identified caller may read settings and devices; a slice may
// be read by its owner, its account and operators; callers with the role 'user' may create slices and change
// their own; everything else requires an operator. Routes that act on the calling process (enter, supervise)
// are served only by the agent itself.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response see_agent(const Call&);
http::Response list_agent_devices(const Call&);
http::Response list_agent_slices(const Call&);
http::Response get_agent_slice(const Call&);
http::Response create_agent_slice(const Call&);
http::Response explain_on_agent(const Call&);
http::Response change_agent_slice(const Call&);  // Handles PATCH and DELETE.
http::Response operate_agent(const Call&);

}  // namespace carve::controller
