// The routes of objects with replicas: their logs and revisions, and the actions that do not change a
// document.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response get_logs(const Call&);
http::Response get_revisions(const Call&);
// Returns the object with the spec of the revision that the path names, without its status.
http::Response get_revision(const Call&);

http::Response start(const Call&);
http::Response stop(const Call&);
http::Response restart(const Call&);
// Returns the object to an earlier revision.
http::Response undo(const Call&);

// Changes the stored document of a service that was written in another system's form, and applies it again.
http::Response modify(const Call&);

}  // namespace carve::controller
