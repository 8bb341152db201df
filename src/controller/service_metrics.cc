#include "controller/service_metrics.h"

#include "wire/api/exposition.h"

namespace carve::controller {
namespace {

constexpr const char* status_classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx", "other"};

// A gauge of each endpoint.
struct Level {
  const char* name;
  const char* help;
  std::string (*value)(const RequestFigures&);
};
constexpr Level levels[] = {
    {"carve_service_sessions", "Requests, streams and tunnels in progress at the replicas.",
     [](const RequestFigures& f) { return fmt::format("{}", f.sessions); }},
    {"carve_service_queued_requests", "Requests waiting for a replica.",
     [](const RequestFigures& f) { return fmt::format("{}", f.queued); }},
    {"carve_service_response_time_seconds",
     "Mean time from a request to the header of its response, over the last 1,024 requests.",
     [](const RequestFigures& f) { return api::seconds_of(f.mean_response_ms * 1'000'000); }},
};

}  // namespace

std::string service_metrics(const std::vector<RequestFigures>& endpoints) {
  api::Exposition out;
  out.family("carve_service_requests_total", "counter", "Requests, by the class of the response's status.");
  for (const RequestFigures& endpoint : endpoints)
    for (size_t i = 0; i < endpoint.responses.size(); ++i)
      out.sample(
          {{"namespace", endpoint.name_space}, {"service", endpoint.service}, {"code", status_classes[i]}},
          fmt::format("{}", endpoint.responses[i]));
  for (const Level& level : levels) {
    out.family(level.name, "gauge", level.help);
    for (const RequestFigures& endpoint : endpoints)
      out.sample({{"namespace", endpoint.name_space}, {"service", endpoint.service}}, level.value(endpoint));
  }
  return out.text();
}

std::string queue_metrics(size_t waiting_jobs, int64_t decision_ns) {
  api::Exposition out;
  out.family("carve_queue_waiting_jobs", "gauge", "Waiting jobs, over all queues.");
  out.sample({}, fmt::format("{}", waiting_jobs));
  out.family("carve_queue_decision_seconds", "gauge", "Duration of the last decision over all queues.");
  out.sample({}, api::seconds_of(static_cast<uint64_t>(decision_ns)));
  return out.text();
}

std::string loop_metrics(int64_t longest_turn_ns) {
  api::Exposition out;
  out.family("carve_controller_loop_longest_turn_seconds", "gauge",
             "Longest turn of the API's loop since the controller started. During a turn no caller gets a "
             "response.");
  out.sample({}, api::seconds_of(static_cast<uint64_t>(longest_turn_ns)));
  return out.text();
}

}  // namespace carve::controller
