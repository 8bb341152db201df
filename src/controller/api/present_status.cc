#include "controller/api/present_status.h"

#include "controller/api/job_routes.h"
#include "controller/api/node_routes.h"

namespace carve::controller {
namespace {

using objects::Kind;

NodeObservationPointer observation_of(const Views& views, const Object& node) {
  for (NodeObservationPointer& known : views.nodes())
    if (known->record.name == node.key.name) return std::move(known);
  return nullptr;
}

// The time of the last response is left out, because it changes with each poll.
std::string agent_values(const NodeObservation& known) {
  return fmt::format("{}\n{}\n{}\n{}", text(known.reachability), known.problem, known.record.agent_version,
                     known.record.agent_started_ns);
}

std::string queue_values(const Views& views, const Object& object) {
  const auto position = views.job_position(object.uid);
  return position ? fmt::format("{}\n{}", position->position, position->reason) : "";
}

}  // namespace

PresentStatus present_status(const Views& views) {
  return {.shown = [&views](const Object& object) -> Object {
            if (object.key.kind != Kind::node) return with_present_status(views, object);
            const auto known = observation_of(views, object);
            return known ? with_agent(object, *known) : object;
          },
          .values = [&views](const Object& object) -> std::string {
            if (object.key.kind != Kind::node) return queue_values(views, object);
            const auto known = observation_of(views, object);
            return known ? agent_values(*known) : "";
          }};
}

}  // namespace carve::controller
