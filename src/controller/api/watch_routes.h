// The route of watches: GET /v1/watch?kinds=services,applications&namespace=&labelSelector=&resourceVersion=
#pragma once

#include <functional>

#include "controller/api/api_call.h"
#include "controller/api/watches.h"

namespace carve::controller {

// Returns the watch that a request describes. When a client reconnects, its Last-Event-ID header replaces the
// resource version of its first request.
Outcome<WatchQuery> watch_query(const http::Request&);

// Returns a predicate for streams that returns whether the caller's token is still valid. Null if the caller
// uses no token.
std::function<bool()> validity_of(const Call&);

http::Response watch(const Call&);

}  // namespace carve::controller
