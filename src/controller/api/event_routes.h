// The routes of events: GET /v1/events, GET /v1/services/NAME/events. Every identified caller may read them:
// they say what happened, and neither logs nor environments.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response get_events(const Call&);  // Of the object that the path names, also of a deleted one.
http::Response get_node_events(const Call&);
http::Response get_pool_events(const Call&);
http::Response list_events(const Call&);  // Of all objects.

}  // namespace carve::controller
