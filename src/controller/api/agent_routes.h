// The routes below /v1/nodes/NAME that the node's agent answers. The controller is an operator of its agents,
// so the caller's rights are applied here: every identified caller sees settings and devices; slices are seen
// by their owner, their account and operators; the role user creates slices of its own and changes them; all
// else is the operators'. Routes that act on the calling process (enter, supervise) are the agent's alone.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response see_agent(const Call&);
http::Response list_agent_devices(const Call&);
http::Response list_agent_slices(const Call&);
http::Response get_agent_slice(const Call&);
http::Response create_agent_slice(const Call&);
http::Response explain_on_agent(const Call&);
http::Response change_agent_slice(const Call&);  // The methods PATCH and DELETE.
http::Response operate_agent(const Call&);

}  // namespace carve::controller
