#include "controller/api/event_routes.h"

#include "controller/api/list_query.h"
#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

http::Response shown_events(const std::vector<KeptEvent>& events) {
  objects::ObjectEventList out;
  for (const KeptEvent& event : events)
    out.items.push_back({.kind = std::string(objects::text_of(event.key.object.kind).kind),
                         .namespace_ = event.key.object.namespace_,
                         .name = event.key.object.name,
                         .uid = event.key.uid,
                         .type = objects::is_warning(event.key.reason) ? objects::EventType::warning
                                                                       : objects::EventType::normal,
                         .reason = event.key.reason,
                         .message = event.message,
                         .caller = event.caller,
                         .count = event.count,
                         .first_at = os::rfc3339(event.first_ns, os::Decimals::milliseconds),
                         .last_at = os::rfc3339(event.last_ns, os::Decimals::milliseconds)});
  return document(out);
}

}  // namespace

http::Response get_events(const Call& call) {
  const auto query = parse_query(call.request.query, {"namespace", "lives"});
  if (!query) return refuse(query.error());
  const auto lives = query->find("lives");
  if (lives != query->end() && lives->second != "all" && lives->second != "last")
    return refuse(FailureKind::invalid_argument, fmt::format("lives '{}': must be last (the default) or all",
                                                             lives->second.substr(0, max_shown_bytes)));
  const auto space = query->find("namespace");
  const ObjectKey key{call.kind, space == query->end() ? "default" : space->second, call.names[0]};
  const bool all_lives = lives != query->end() && lives->second == "all";
  std::vector<KeptEvent> events;
  if (call.context.events != nullptr) {
    call.context.events->take_changes(call.context.views.now_ns());
    events = all_lives ? call.context.events->of_all_lives(key) : call.context.events->of(key);
  }
  if (events.empty() && !call.context.objects.find(key))
    return refuse(FailureKind::not_found, fmt::format("there is no {}", text(key)));
  return shown_events(events);
}

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
