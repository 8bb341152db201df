#include "node/api/event_routes.h"

#include "node/api/views.h"

namespace carve::node {
namespace {

bool may_see(const http::Caller& caller, const Event& event) {
  return caller.may_operate() || (event.owner && caller.may_see(*event.owner));
}

}  // namespace

Reply<EventQuery> event_query(const std::string& query) {
  EventQuery out;
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string part = query.substr(at, end - at);
    if (part == "watch=true")
      out.watch = true;
    else if (part.starts_with("after="))
      out.after = part.substr(6);
    else if (part != "watch=false")
      return refuse(
          FailureKind::invalid_argument,
          fmt::format("'{}' is not a query parameter of /v1/events; use watch=true, which allows after=ID",
                      part.substr(0, 80)));
    at = end + 1;
  }
  if (!out.watch && !out.after.empty())
    return refuse(FailureKind::invalid_argument, "after=ID requires a watch: ?watch=true&after=ID");
  return out;
}

api::EventList list_events(const EventLog& log, const http::Caller& caller) {
  api::EventList list;
  for (const Event& e : log)
    if (may_see(caller, e)) list.events.push_back(view(e));
  return list;
}

http::Response watch_events(EventLog& log, const http::Caller& caller, const std::string& after) {
  const auto seen = log.last_seen(after);
  if (!seen) return problem(refuse(seen.error()));
  http::EventStream stream;
  for (const Event& e : log)
    if (e.number > *seen && may_see(caller, e)) stream.first.push_back({log.id(e), api::write(view(e))});
  stream.subscribe = [&log, caller](http::Stream& to) {
    return log.subscribe([&log, &to, caller](const Event& e) {
      if (may_see(caller, e)) to.send({log.id(e), api::write(view(e))});
    });
  };
  return {.content = std::move(stream)};
}

http::Response events(const RequestContext& a) {
  const auto query = event_query(a.request.query);
  if (!query) return problem(query.error());
  if (!query->watch) return document(list_events(a.agent.events(), a.caller));
  // A client that reconnects sends the header and repeats the query of its first request.
  const std::string* last = a.request.headers.find("Last-Event-ID");
  return watch_events(a.agent.events(), a.caller, last != nullptr ? *last : query->after);
}

}  // namespace carve::node
