#include "node/api/routes.h"

#include <algorithm>

#include "http/files.h"
#include "node/api/reply.h"
#include "node/metrics/metrics.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/socket.h"

namespace carve::node {
namespace {

// Returns the decoded text in place of the pattern's {}; no value if the path does not match. Names have no
// control characters.
std::optional<std::string> name_in(std::string_view path, std::string_view pattern) {
  const size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return path == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, hole), after = pattern.substr(hole + 2);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return std::nullopt;
  const std::string_view part = path.substr(before.size(), path.size() - before.size() - after.size());
  if (part.find('/') != std::string_view::npos) return std::nullopt;
  auto name = http::percent_decoded(part);
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (!name || std::ranges::any_of(*name, is_control)) return std::nullopt;
  return name;
}

http::Response refuse_ended(const os::ProcessId& process) {
  http::Response refusal = problem(
      refuse(FailureKind::unauthenticated,
             fmt::format("process {}, which made this connection, has ended; connect again", process.pid)));
  refusal.closes = true;
  return refusal;
}

// The name of the object that a request creates, in the request and in the response.
struct NamedObject {
  std::string name;
};

std::string name_in_document(const std::string& text) {
  const auto named = api::read<NamedObject>(text, api::Reading::lenient);
  return named ? named->name.substr(0, 80) : "";
}

api::AuditEntry audit_entry(const Route& route, const RequestContext& asked, const std::string& name,
                            const http::Response& response) {
  const auto* const text = std::get_if<std::string>(&response.content);
  const std::string body = text != nullptr ? *text : "";
  const bool is_refused = response.status >= 400;
  std::string object = name.substr(0, 80);
  if (object.empty()) object = name_in_document(is_refused ? asked.request.body : body);
  api::AuditEntry out{.time_ns = static_cast<uint64_t>(os::utc_ns()),
                      .caller = asked.caller.text(),
                      .verb = route.verb,
                      .object = object.empty() ? route.audited : fmt::format("{} {}", route.audited, object),
                      .status = response.status,
                      .message = ""};
  if (is_refused)
    if (const auto problem = api::read<api::Problem>(body, api::Reading::lenient))
      out.message = problem->detail;
  return out;
}

}  // namespace

Routes::Routes(Agent& agent, Diagnose diagnose, std::string audit_path)
    : agent_(agent),
      diagnose_(std::move(diagnose)),
      started_ns_(os::utc_ns()),
      audit_(std::move(audit_path)) {}

http::Response Routes::answer(const http::Request& request, const http::Caller& from) {
  const auto process = from.process();
  if (!process)
    return problem(refuse(FailureKind::unauthenticated,
                          "the caller is not identified; connect to the agent's unix socket"));
  // The process may have entered a slice since it connected.
  const std::optional<SliceView> now = agent_.slice_of(process->pid);
  // While the process is alive, no other process has its pid, so the slice above is the caller's.
  if (from.has_ended()) return refuse_ended(*process);
  const http::Caller caller = now && from.slice() == nullptr ? from.inside(now->name()) : from;
  const std::string* const inside = caller.slice();
  const RequestContext asked{agent_, request, caller, started_ns_, diagnose_, audit_};
  bool path_known = false;
  for (const std::span<const Route> routes : {slice_routes(), machine_routes()})
    for (const Route& route : routes) {
      const auto name = name_in(request.path, route.path);
      if (!name) continue;
      path_known = true;
      if (request.method != route.method) continue;
      // The process that will execute a slice's program may be a child of the slice's supervisor. It may
      // enter that slice once. All other processes inside a slice are rejected, whatever their uid.
      const bool entering =
          route.from_inside && now && !now->entered && now->name() == *name && *inside == *name;
      if (inside != nullptr && !entering)
        return problem(
            refuse(FailureKind::called_from_slice,
                   fmt::format("process {} runs in slice {}; manage slices from a process outside of slices",
                               process->pid, *inside)));
      os::log::debug("{} {} by process {} ({})", request.method, request.path, process->pid, caller.text());
      const auto acting = agent_.events().acting(caller.text());
      http::Response response = route.plain != nullptr ? route.plain(asked) : route.of_slice(asked, *name);
      if (route.verb != nullptr && request.query != "dryRun=true")
        audit_.add(audit_entry(route, asked, *name, response));
      return response;
    }
  if (path_known)
    return problem(refuse_method(
        fmt::format("{} has no method {}", request.path.substr(0, 80), request.method.substr(0, 20))));
  return problem(refuse(FailureKind::not_found, fmt::format("there is no {}; the API's paths begin with /v1/",
                                                            request.path.substr(0, 80))));
}

http::Response refuse_bytes(unsigned status, std::string detail) {
  auto kind = FailureKind::invalid_argument;
  for (const auto other : {FailureKind::resource_exhausted, FailureKind::unauthenticated})
    if (status == shown(other).http_status) kind = other;
  Refusal refusal = refuse(kind, std::move(detail)).value();
  refusal.problem.status = status;
  return problem(refusal);
}

std::optional<http::Caller> identify(const Agent& agent, int socket, const Operators& operators) {
  auto peer = os::peer_of(socket);
  if (!peer) return std::nullopt;
  const auto slice = agent.slice_of(peer->process.pid);
  http::Caller caller = http::Caller::user(std::move(*peer), operators.uids);
  if (!caller.may_operate() && operators.gid && os::is_peer_in_group(socket, *operators.gid))
    caller = caller.operating("a member of the group " + operators.group);
  if (caller.has_ended()) return std::nullopt;
  return slice ? caller.inside(slice->name()) : caller;
}

http::Response answer_metrics(Agent& agent, const http::Request& request) {
  if (request.path != "/metrics")
    return problem(refuse(FailureKind::not_found,
                          "this port serves only /metrics; the API is on the agent's unix socket"));
  if (request.method != "GET") return problem(refuse_method("/metrics supports only the method GET"));
  const api::MetricsFormat format = api::metrics_format(request.headers.find("Accept"));
  return {200, api::metrics_type(format),
          metrics_text(figures({agent, [](uint32_t) { return true; }}), format)};
}

}  // namespace carve::node
