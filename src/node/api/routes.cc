#include "node/api/routes.h"

#include "node/api/reply.h"
#include "node/metrics/metrics.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/socket.h"

namespace carve::node {
namespace {

// Returns the text in place of the pattern's {}, or no value if the path does not match.
std::optional<std::string> name_in(std::string_view path, std::string_view pattern) {
  const size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return path == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, hole), after = pattern.substr(hole + 2);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return std::nullopt;
  const std::string_view name = path.substr(before.size(), path.size() - before.size() - after.size());
  return name.find('/') == std::string_view::npos ? std::optional<std::string>(name) : std::nullopt;
}

}  // namespace

Routes::Routes(Agent& agent, Diagnose diagnose)
    : agent_(agent), diagnose_(std::move(diagnose)), started_ns_(os::utc_ns()) {}

http::Response Routes::answer(const http::Request& request, const http::Caller& from) {
  const auto process = from.process();
  if (!process)
    return problem(refuse(FailureKind::unauthenticated,
                          "the caller is not identified; connect to the agent's unix socket"));
  const std::optional<SliceView> inside = agent_.slice_of(process->pid);
  const http::Caller caller = inside ? from.inside(inside->name()) : from;
  const RequestContext asked{agent_, request, caller, inside ? &*inside : nullptr, started_ns_, diagnose_};
  bool path_known = false;
  for (const std::span<const Route> routes : {slice_routes(), machine_routes()})
    for (const Route& route : routes) {
      const auto name = name_in(request.path, route.path);
      if (!name) continue;
      path_known = true;
      if (request.method != route.method) continue;
      // The process that will execute a slice's program may be a child of the slice's supervisor. It may
      // enter that slice once. All other processes inside a slice are refused, for every uid.
      const bool entering = route.from_inside && asked.inside != nullptr && asked.inside->name() == *name &&
                            !asked.inside->entered;
      if (asked.inside != nullptr && !entering)
        return problem(refuse(FailureKind::called_from_slice,
                              fmt::format("process {} runs in slice {}; manage slices from a process outside",
                                          process->pid, asked.inside->name())));
      os::log::debug("{} {} by process {} ({})", request.method, request.path, process->pid, caller.text());
      return route.plain != nullptr ? route.plain(asked) : route.of_slice(asked, *name);
    }
  if (path_known)
    return problem(refuse_method(
        fmt::format("{} has no method {}", request.path.substr(0, 80), request.method.substr(0, 20))));
  return problem(refuse(FailureKind::not_found, fmt::format("there is no {}; the API's paths begin with /v1/",
                                                            request.path.substr(0, 80))));
}

http::Response refuse_bytes(unsigned status, std::string detail) {
  const auto kind = status == shown(FailureKind::resource_exhausted).http_status
                        ? FailureKind::resource_exhausted
                        : FailureKind::invalid_argument;
  Refusal refusal = refuse(kind, std::move(detail)).value();
  refusal.problem.status = status;
  return problem(refusal);
}

std::optional<http::Caller> identify(int socket, std::span<const uint32_t> operators) {
  const auto peer = os::peer_of(socket);
  if (!peer) return std::nullopt;
  return http::Caller::user(peer->uid, peer->process, operators);
}

http::Response answer_metrics(Agent& agent, const http::Request& request) {
  if (request.path != "/metrics")
    return problem(refuse(FailureKind::not_found,
                          "this port serves only /metrics; the API is on the agent's unix socket"));
  if (request.method != "GET") return problem(refuse_method("metrics have only the method GET"));
  return {200, api::metrics_type,
          metrics_text(figures({agent, [](const ledger::UsageRecord&) { return true; }}))};
}

}  // namespace carve::node
