// The routes of events: GET /v1/events, GET /v1/services/NAME/events. Every identified caller may read them,
// because events contain neither logs nor environments.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

// Lists the events of the object with the path's name, or of the last object that had it; with lives=all,
// those of every object that had the name.
http::Response get_events(const Call&);
http::Response list_events(const Call&);  // Events of all objects.

}  // namespace carve::controller
