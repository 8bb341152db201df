// The routes of objects that have replicas: their logs and revisions, and the user's actions that do not
// change a document.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response get_logs(const Call&);
http::Response get_revisions(const Call&);

http::Response start(const Call&);
http::Response stop(const Call&);
http::Response restart(const Call&);
// Returns to a previous revision.
http::Response undo(const Call&);

// Changes the stored document of a service that was written in another system's form, and applies it again.
http::Response modify(const Call&);

}  // namespace carve::controller
