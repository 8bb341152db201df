// The event log as the API shows it: a list, or a stream that goes on with each new event (?watch=true).
#pragma once

#include "node/api/reply.h"

namespace carve::node {

http::Response events(const RequestContext&);

// The query of the route. `after` is percent-encoded only if a client encodes more than it must.
struct EventQuery {
  bool watch = false;
  std::string after = {};  // The id of the event that the caller saw last; empty: none.
};
Reply<EventQuery> event_query(const std::string& query);

// Returns the list of the events that the caller may see: all, or those of the slices that it owns or owned.
api::EventList list_events(const EventLog&, const http::Caller&);

// Returns the stream of the events behind `after`, as the caller may see them; 410 if some are not kept.
http::Response watch_events(EventLog&, const http::Caller&, const std::string& after);

}  // namespace carve::node
