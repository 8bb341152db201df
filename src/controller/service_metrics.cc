#include "controller/service_metrics.h"

#include <fmt/format.h>

namespace carve::controller {
namespace {

using api::metric;

constexpr const char* status_classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx", "other"};

// A gauge of each endpoint.
struct Level {
  const api::MetricFamily& family;
  std::string (*value)(const RequestFigures&);
};
constexpr Level levels[] = {
    {metric("carve_service_sessions"), [](const RequestFigures& f) { return std::to_string(f.sessions); }},
    {metric("carve_service_queued_requests"),
     [](const RequestFigures& f) { return std::to_string(f.queued); }},
    {metric("carve_service_response_time_seconds"),
     [](const RequestFigures& f) { return api::seconds_of(f.mean_response_ms * 1'000'000); }},
};

}  // namespace

void write_service_metrics(api::Exposition& out, const std::vector<RequestFigures>& endpoints) {
  out.family(metric("carve_service_requests_total"));
  for (const RequestFigures& endpoint : endpoints)
    for (size_t i = 0; i < endpoint.responses.size(); ++i)
      out.sample({endpoint.name_space, endpoint.service, status_classes[i]},
                 std::to_string(endpoint.responses[i]));
  for (const Level& level : levels) {
    out.family(level.family);
    for (const RequestFigures& endpoint : endpoints)
      out.sample({endpoint.name_space, endpoint.service}, level.value(endpoint));
  }
}

void write_queue_metrics(api::Exposition& out, size_t waiting_jobs, int64_t decision_ns) {
  out.family(metric("carve_queue_waiting_jobs"));
  out.sample(std::to_string(waiting_jobs));
  out.family(metric("carve_queue_decision_seconds"));
  out.sample(api::seconds_of(static_cast<uint64_t>(decision_ns)));
}

void write_loop_metrics(api::Exposition& out, int64_t longest_turn_ns) {
  out.family(metric("carve_controller_loop_longest_turn_seconds"));
  out.sample(api::seconds_of(static_cast<uint64_t>(longest_turn_ns)));
}

}  // namespace carve::controller
