#include "controller/api/event_routes.h"

#include "controller/api/list_query.h"
#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using K = FailureKind;
using objects::Kind;

http::Response shown_events(const std::vector<KeptEvent>& events) {
  objects::ObjectEventList out;
  for (const KeptEvent& event : events)
    out.items.push_back({.kind = std::string(objects::text_of(event.key.object.kind).kind),
                         .namespace_ = event.key.object.namespace_,
                         .name = event.key.object.name,
                         .type = objects::is_warning(event.key.reason) ? "Warning" : "Normal",
                         .reason = event.key.reason,
                         .message = event.message,
                         .count = event.count,
                         .first_at = os::rfc3339(event.first_ns, os::Decimals::milliseconds),
                         .last_at = os::rfc3339(event.last_ns, os::Decimals::milliseconds)});
  return document(out);
}

http::Response events_of_kind(const Call& call, Kind kind) {
  return get_events({call.context, call.request, call.caller, kind, call.names});
}

}  // namespace

http::Response get_events(const Call& call) {
  const auto key = key_of(call);
  if (!key) return refuse(key.error());
  std::vector<KeptEvent> events;
  if (call.context.events != nullptr) {
    call.context.events->take_changes(call.context.views.now_ns());
    events = call.context.events->of(*key);
  }
  if (events.empty() && !call.context.objects.find(*key))
    return refuse(K::not_found, fmt::format("there is no {}", text(*key)));
  return shown_events(events);
}

http::Response get_node_events(const Call& call) { return events_of_kind(call, Kind::node); }
http::Response get_pool_events(const Call& call) { return events_of_kind(call, Kind::pool); }

http::Response list_events(const Call& call) {
  const auto query = parse_query(call.request.query, {"namespace", "limit"});
  if (!query) return refuse(query.error());
  const auto limit = query->contains("limit") ? parse_limit(query->at("limit")) : default_list_limit;
  if (!limit) return refuse(limit.error());
  if (call.context.events == nullptr) return shown_events({});
  call.context.events->take_changes(call.context.views.now_ns());
  return shown_events(
      call.context.events->newest(query->contains("namespace") ? query->at("namespace") : "", *limit));
}

}  // namespace carve::controller
