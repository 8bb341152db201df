// The route that prints documents as Kubernetes manifests. It stores nothing.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response render_documents(const Call&);

}  // namespace carve::controller
