// The values that the API shows in the status of objects, and that are not stored with them: the state of a
// node's agent, and the position and reason of a waiting job or Ray cluster.
#pragma once

#include "controller/api/api_call.h"
#include "controller/api/watches.h"

namespace carve::controller {

// For the watches. `views` must exist as long as the result.
PresentStatus present_status(const Views& views);

}  // namespace carve::controller
