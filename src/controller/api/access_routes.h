// The route that answers whether the caller may use a verb on a kind of objects, or on one object. It applies the rules
// of planning.h, which also decide the request itself.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response get_access(const Call&);

}  // namespace carve::controller
