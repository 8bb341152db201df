// The route of the history of slices and devices.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response get_history(const Call&);

}  // namespace carve::controller
