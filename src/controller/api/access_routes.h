// The routes that answer what the caller may do, and which requests acted. The first applies the rules of planning.h,
// which also decide the request itself.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response get_access(const Call&);
// Returns the newest entries of the audit log; for callers that are not operators, their own.
http::Response get_audit(const Call&);

}  // namespace carve::controller
