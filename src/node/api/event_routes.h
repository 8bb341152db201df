// The event log in the API: a list, or a stream that continues with each new event (?watch=true).
#pragma once

#include "node/api/reply.h"

namespace carve::node {

http::Response events(const RequestContext&);

// The query of the route. `after` need not be percent-encoded, but a client may encode it.
struct EventQuery {
  bool watch = false;
  std::string after = {};  // Id of the last event that the caller saw. Empty if none.
};
Reply<EventQuery> event_query(const std::string& query);

// Returns the events that the caller may see: all, or those of slices that it owns or owned.
api::EventList list_events(const EventLog&, const http::Caller&);

// Returns the stream of the events after `after` that the caller may see. Responds with 410 if some of them
// are no longer kept.
http::Response watch_events(EventLog&, const http::Caller&, const std::string& after);

}  // namespace carve::node
