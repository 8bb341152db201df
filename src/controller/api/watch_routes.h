// The route of watches: GET /v1/watch?kinds=services,applications&namespace=&labelSelector=&resourceVersion=
#pragma once

#include <functional>

#include "controller/api/api_call.h"
#include "controller/api/watches.h"

namespace carve::controller {

// Returns what a request wants to watch. The header Last-Event-ID of a client that connects again replaces
// the resource version of its first request.
Outcome<WatchQuery> watch_query(const http::Request&);

// Returns what tells whether the token of the caller is still valid, for streams; null: it needs none.
std::function<bool()> validity_of(const Call&);

http::Response watch(const Call&);

}  // namespace carve::controller
