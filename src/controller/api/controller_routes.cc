#include "controller/api/controller_routes.h"

#include <algorithm>

#include "controller/api/agent_routes.h"
#include "controller/api/bill_routes.h"
#include "controller/api/event_routes.h"
#include "controller/api/idempotency.h"
#include "controller/api/job_routes.h"
#include "controller/api/node_routes.h"
#include "controller/api/object_routes.h"
#include "controller/api/openapi.h"
#include "controller/api/pool_routes.h"
#include "controller/api/render_routes.h"
#include "controller/api/token_routes.h"
#include "controller/api/watch_routes.h"
#include "controller/api/workload_routes.h"
#include "os/log.h"
#include "wire/api/exposition.h"

namespace carve::controller {
namespace {

using K = FailureKind;

constexpr size_t max_shown_path_bytes = 80;
constexpr size_t max_shown_method_bytes = 20;

http::Response get_version(const Call& call) { return document(call.context.views.version()); }

http::Response get_openapi(const Call& call);

http::Response get_metrics(const Call& call) {
  return {200, api::metrics_type, call.context.views.metrics()};
}

// Calls the handler for objects of this kind, which the path names without a hole.
template <objects::Kind kind, http::Response (*handler)(const Call&)>
http::Response of(const Call& call) {
  return handler({call.context, call.request, call.caller, kind, call.names});
}
using enum objects::Kind;

constexpr Route table[] = {
    {"GET", "/v1/version", get_version,
     "Shows the version, the process and the state directory of the controller.", "ControllerVersion"},
    {"GET", "/v1/nodes", list_nodes, "Lists the nodes with their devices.", "NodeList"},
    {"GET", "/v1/nodes/{}", get_node, "Shows one node.", "Node"},
    {"PATCH", "/v1/nodes/{}", patch_node, "Changes labels and settings of a node by a merge patch.", "Node",
     "any", "namespace whenFree"},
    {"POST", "/v1/nodes/{}/drain", drain_node,
     "Cordons a node and moves the replicas of services from it to other nodes.", "any"},
    {"POST", "/v1/nodes/{}/end-slices", end_node_slices, "Ends the slices that run on a node.", "any"},
    {"POST", "/v1/nodes/{}/restart", restart_node,
     "Puts the desired settings of a node into effect when its slices have ended.", "any", "",
     "namespace force"},
    {"POST", "/v1/nodes/{}/start", start_node, "Starts a stopped node.", "any"},
    {"POST", "/v1/nodes/{}/stop", stop_node, "Stops a node.", "any", "", "namespace force"},
    {"GET", "/v1/nodes/{}/events", get_node_events, "Lists what happened to a node.", "ObjectEventList", "",
     "namespace"},
    {"GET", "/v1/nodes/{}/version", see_agent, "Shows the agent of a node.", "any"},
    {"GET", "/v1/nodes/{}/node", see_agent, "Shows the settings of a node's agent.", "any"},
    {"GET", "/v1/nodes/{}/doctor", see_agent, "Shows what the agent of a node can enforce, and what not.",
     "any"},
    {"GET", "/v1/nodes/{}/devices", list_agent_devices, "Lists the devices of a node.", "DeviceList"},
    {"GET", "/v1/nodes/{}/slices", list_agent_slices, "Lists the slices of a node that the caller may see.",
     "SliceList", "", "all"},
    {"POST", "/v1/nodes/{}/slices", create_agent_slice, "Creates a slice on a node.", "Slice",
     "SliceRequest"},
    {"POST", "/v1/nodes/{}/explain", explain_on_agent,
     "Tells where a slice would be placed on a node, and why not elsewhere.", "Explanation", "SliceRequest"},
    {"GET", "/v1/nodes/{}/slices/{}", get_agent_slice, "Shows one slice of a node.", "Slice"},
    {"PATCH", "/v1/nodes/{}/slices/{}", change_agent_slice, "Changes the terms of a slice of a node.",
     "Slice", "SliceChange"},
    {"DELETE", "/v1/nodes/{}/slices/{}", change_agent_slice, "Ends a slice of a node.", "Slice"},
    {"POST", "/v1/nodes/{}/slices/{}/thaw", operate_agent, "Thaws a slice that the audit froze.", "Slice"},
    {"GET", "/v1/nodes/{}/consolidation", operate_agent,
     "Shows the moves that would empty devices of a node.", "any", "", "devices"},
    {"GET", "/v1/nodes/{}/agent-events", operate_agent, "Lists the newest events of a node's agent.", "any"},
    {"GET", "/v1/nodes/{}/trace", operate_agent, "Shows which slice held which device of a node, and when.",
     "any", "", "seconds"},
    {"GET", "/v1/nodes/{}/usage", operate_agent, "Lists the usage records of a node by id.", "any", "",
     "after"},
    {"GET", "/v1/nodes/{}/metrics", operate_agent, "Prints the figures of a node's agent.", "text"},
    {"GET", "/v1/pools", list_pools, "Lists the node pools.", "PoolList"},
    {"POST", "/v1/pools", post_documents, "Applies documents: all of them, or none.", "AppliedList", "any",
     "dialect dryRun explain"},
    {"GET", "/v1/pools/{}", get_pool, "Shows one node pool.", "Pool"},
    {"PUT", "/v1/pools/{}", put_pool, "Replaces the spec of a node pool by that of the document.", "Pool",
     "Pool"},
    {"PATCH", "/v1/pools/{}", patch_pool, "Changes the fields of a node pool that a merge patch has.", "Pool",
     "any"},
    {"DELETE", "/v1/pools/{}", delete_pool, "Deletes a node pool.", "Pool"},
    {"GET", "/v1/pools/{}/slicing", get_slicing, "Tells whether the devices of a node pool can be sliced.",
     "Slicing"},
    {"GET", "/v1/pools/{}/events", get_pool_events, "Lists what happened to a node pool.", "ObjectEventList",
     "", "namespace"},
    {"GET", "/v1/queues", of<queue, list_objects>, "Lists the queues.", "QueueList", "",
     "namespace labelSelector limit continue"},
    {"POST", "/v1/queues", post_documents, "Applies documents: all of them, or none.", "AppliedList", "any",
     "dialect dryRun explain"},
    {"GET", "/v1/queues/{}", of<queue, get_object>, "Shows one queue.", "Queue"},
    {"PUT", "/v1/queues/{}", of<queue, put_object>, "Replaces the spec of a queue by that of the document.",
     "Queue", "Queue"},
    {"PATCH", "/v1/queues/{}", of<queue, patch_object>,
     "Changes the fields of a queue that a merge patch has.", "Queue", "any"},
    {"DELETE", "/v1/queues/{}", delete_queue, "Deletes a queue without unfinished jobs.", "Queue"},
    {"GET", "/v1/queues/{}/events", of<queue, get_events>, "Lists what happened to a queue.",
     "ObjectEventList", "", "namespace"},
    {"GET", "/v1/jobs", of<job, list_objects>, "Lists the jobs in pages.", "JobList", "",
     "namespace labelSelector limit continue"},
    {"POST", "/v1/jobs", post_documents, "Submits jobs: all of the documents, or none.", "AppliedList", "any",
     "dialect dryRun explain"},
    {"GET", "/v1/jobs/{}", of<job, get_object>, "Shows one job.", "Job", "", "namespace"},
    {"PUT", "/v1/jobs/{}", of<job, put_object>,
     "Replaces the labels and annotations of a job by those of the document.", "Job", "Job", "namespace"},
    {"PATCH", "/v1/jobs/{}", of<job, patch_object>,
     "Changes the labels and annotations of a job that a merge patch has.", "Job", "any", "namespace"},
    {"DELETE", "/v1/jobs/{}", of<job, delete_object>, "Deletes a job when its programs have ended.", "Job",
     "", "namespace"},
    {"POST", "/v1/jobs/{}/cancel", cancel_job, "Ends a job.", "Job", "", "namespace"},
    {"GET", "/v1/jobs/{}/events", of<job, get_events>, "Lists what happened to a job.", "ObjectEventList", "",
     "namespace"},
    {"GET", "/v1/jobs/{}/logs", of<job, get_logs>, "Prints the output of a job's programs.", "text", "",
     "namespace role replica previous tail sinceSeconds follow plain"},
    {"GET", "/v1/rayclusters", of<ray_cluster, list_objects>, "Lists the Ray clusters.", "RayClusterList", "",
     "namespace labelSelector limit continue"},
    {"POST", "/v1/rayclusters", post_documents, "Applies documents: all of them, or none.", "AppliedList",
     "any", "dialect dryRun explain"},
    {"GET", "/v1/rayclusters/{}", of<ray_cluster, get_object>, "Shows one Ray cluster.", "RayCluster", "",
     "namespace"},
    {"PUT", "/v1/rayclusters/{}", of<ray_cluster, put_object>,
     "Changes the numbers of workers of a Ray cluster to those of the document.", "RayCluster", "RayCluster",
     "namespace"},
    {"PATCH", "/v1/rayclusters/{}", of<ray_cluster, patch_object>,
     "Changes the fields of a Ray cluster that a merge patch has: the numbers of workers.", "RayCluster",
     "any", "namespace"},
    {"DELETE", "/v1/rayclusters/{}", of<ray_cluster, delete_object>,
     "Deletes a Ray cluster when its programs have ended.", "RayCluster", "", "namespace"},
    {"GET", "/v1/rayclusters/{}/events", of<ray_cluster, get_events>, "Lists what happened to a Ray cluster.",
     "ObjectEventList", "", "namespace"},
    {"GET", "/v1/rayclusters/{}/logs", of<ray_cluster, get_logs>,
     "Prints the output of a Ray cluster's programs.", "text", "",
     "namespace role replica previous tail sinceSeconds follow plain"},
    {"POST", "/v1/parameters", read_job_parameters,
     "Reads the parameters of a job from their text, in any of the vendor's three forms.", "JobParameters",
     "text"},
    {"GET", "/v1/tariffs", of<tariff, list_objects>, "Lists the tariffs.", "TariffList", "",
     "namespace labelSelector limit continue"},
    {"POST", "/v1/tariffs", post_documents, "Applies documents: all of them, or none.", "AppliedList", "any",
     "dialect dryRun explain"},
    {"GET", "/v1/tariffs/{}", of<tariff, get_object>, "Shows one tariff.", "Tariff"},
    {"PUT", "/v1/tariffs/{}", of<tariff, put_object>,
     "Replaces the spec of a tariff by that of the document.", "Tariff", "Tariff"},
    {"PATCH", "/v1/tariffs/{}", of<tariff, patch_object>,
     "Changes the fields of a tariff that a merge patch has.", "Tariff", "any"},
    {"DELETE", "/v1/tariffs/{}", of<tariff, delete_price>, "Deletes a tariff.", "Tariff"},
    {"GET", "/v1/tariffs/{}/events", of<tariff, get_events>, "Lists what happened to a tariff.",
     "ObjectEventList", "", "namespace"},
    {"GET", "/v1/budgets", of<budget, list_objects>, "Lists the budgets.", "BudgetList", "",
     "namespace labelSelector limit continue"},
    {"POST", "/v1/budgets", post_documents, "Applies documents: all of them, or none.", "AppliedList", "any",
     "dialect dryRun explain"},
    {"GET", "/v1/budgets/{}", of<budget, get_object>, "Shows one budget.", "Budget"},
    {"PUT", "/v1/budgets/{}", of<budget, put_object>,
     "Replaces the spec of a budget by that of the document.", "Budget", "Budget"},
    {"PATCH", "/v1/budgets/{}", of<budget, patch_object>,
     "Changes the fields of a budget that a merge patch has.", "Budget", "any"},
    {"DELETE", "/v1/budgets/{}", of<budget, delete_price>, "Deletes a budget.", "Budget"},
    {"GET", "/v1/budgets/{}/events", of<budget, get_events>, "Lists what happened to a budget.",
     "ObjectEventList", "", "namespace"},
    {"GET", "/v1/bills", get_bill,
     "Shows the invoice of a time, by default the present month; as CSV if the request accepts text/csv.",
     "Bill", "", "from to by account lines idle format"},
    {"GET", "/v1/bills/lines/{}", get_bill_line, "Shows the lines of one part of a usage record.", "Bill", "",
     "from to"},
    {"GET", "/v1/events", list_events, "Lists what happened to all objects.", "ObjectEventList", "",
     "namespace limit"},
    {"GET", "/v1/watch", watch, "Streams the objects and then each change of them as server-sent events.",
     "events", "", "kinds namespace labelSelector resourceVersion"},
    {"POST", "/v1/documents", post_documents, "Applies documents: all of them, or none.", "AppliedList",
     "any", "dialect dryRun explain"},
    {"POST", "/v1/render", render_documents, "Prints documents as manifests of Kubernetes.", "Rendered",
     "any", "dialect"},
    {"GET", "/v1/{kind}", list_objects, "Lists the objects of the kind in pages.", "KindList", "",
     "namespace labelSelector limit continue"},
    {"POST", "/v1/{kind}", post_documents, "Applies documents: all of them, or none.", "AppliedList", "any",
     "dialect dryRun explain"},
    {"GET", "/v1/{kind}/{}", get_object, "Shows one object.", "Kind", "", "namespace"},
    {"PUT", "/v1/{kind}/{}", put_object, "Replaces the spec of an object by that of the document.", "Kind",
     "Kind", "namespace"},
    {"PATCH", "/v1/{kind}/{}", patch_object, "Changes the fields of an object that a merge patch has.",
     "Kind", "any", "namespace"},
    {"DELETE", "/v1/{kind}/{}", delete_object, "Deletes an object when its programs have ended.", "Kind", "",
     "namespace"},
    {"GET", "/v1/{kind}/{}/events", get_events, "Lists what happened to an object.", "ObjectEventList", "",
     "namespace"},
    {"GET", "/v1/{kind}/{}/logs", get_logs, "Prints the output of an object's programs.", "text", "",
     "namespace role replica previous tail sinceSeconds follow plain"},
    {"GET", "/v1/{kind}/{}/revisions", get_revisions, "Lists the kept revisions of an object.",
     "RevisionList", "", "namespace"},
    {"POST", "/v1/{kind}/{}/modify", modify,
     "Changes fields of the PAI-EAS document that a service was made from.", "Kind", "EasChanges",
     "namespace"},
    {"POST", "/v1/{kind}/{}/restart", restart, "Replaces every replica of an object by a new one.", "Kind",
     "", "namespace"},
    {"POST", "/v1/{kind}/{}/start", start, "Starts the replicas of a stopped object.", "Kind", "",
     "namespace"},
    {"POST", "/v1/{kind}/{}/stop", stop, "Stops the replicas of an object and keeps the object.", "Kind", "",
     "namespace"},
    {"POST", "/v1/{kind}/{}/undo", undo, "Returns an object to a former revision.", "Kind", "UndoRequest",
     "namespace"},
    {"GET", "/v1/tokens", list_tokens, "Lists the tokens without their secrets.", "TokenList"},
    {"POST", "/v1/tokens", post_token, "Makes a token and shows it once.", "TokenMade", "TokenRequest"},
    {"DELETE", "/v1/tokens/{}", delete_token, "Deletes a token.", "Nothing"},
    {"GET", "/openapi.json", get_openapi, "Shows this description of the API.", "any"},
    {"GET", "/metrics", get_metrics, "Prints the figures of the services in the text format of Prometheus.",
     "text"},
};

// What a path has in the holes of its pattern.
struct PathParts {
  objects::Kind kind = objects::Kind::service;
  std::vector<std::string> names;
};

constexpr std::string_view kind_hole = "{kind}", name_hole = "{}";

// Returns the parts if the path has the pattern. {kind} is the plural of a kind with replicas.
std::optional<PathParts> parts_of(std::string_view path, std::string_view pattern) {
  PathParts parts;
  while (true) {
    const size_t hole = pattern.find('{');
    if (hole == std::string_view::npos) return path == pattern ? std::optional(parts) : std::nullopt;
    if (!path.starts_with(pattern.substr(0, hole))) return std::nullopt;
    path.remove_prefix(hole);
    pattern.remove_prefix(hole);
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part.empty()) return std::nullopt;
    if (pattern.starts_with(kind_hole)) {
      const auto* const kind = std::ranges::find(objects::kinds, part, &objects::KindText::plural);
      if (kind == std::end(objects::kinds) || !kind->is_workload) return std::nullopt;
      parts.kind = kind->value;
      pattern.remove_prefix(kind_hole.size());
    } else {
      parts.names.emplace_back(part);
      pattern.remove_prefix(name_hole.size());
    }
    path.remove_prefix(end);
  }
}

}  // namespace

std::span<const Route> routes() { return table; }

namespace {

http::Response get_openapi(const Call& call) {
  static const std::string text = openapi_document(table, call.context.views.version().version);
  return {200, "application/json", text};
}

}  // namespace

size_t body_limit(std::string_view method, std::string_view path) {
  const bool has_document = method != "GET" && !path.starts_with("/v1/tokens");
  return has_document ? objects::max_document_bytes : http::max_body_bytes;
}

ControllerRoutes::ControllerRoutes(ApiContext context)
    : context_(std::move(context)), watches_(context_.objects) {
  context_.watches = &watches_;
  context_.answer_read = [this](const http::Request& request, const http::Caller& connection,
                                const ReadDocuments& documents) {
    return answer(request, connection, &documents);
  };
}

Result<http::Caller, http::Response> ControllerRoutes::identified(const http::Request& request,
                                                                  const http::Caller& caller) {
  if (!caller.anonymous()) return caller;
  if (!caller.address().empty())
    if (auto refusal = context_.hosts.refusal(request.headers))
      return tl::unexpected(refuse(K::permission_denied, std::move(*refusal)));
  const int64_t now = context_.views.now_ns();
  // Users of this machine have one address. Wrong tokens of one of them do not close it for the others.
  const std::string origin = caller.origin();
  if (!wrong_tokens_.may_try(origin, now))
    return tl::unexpected(refuse(K::resource_exhausted,
                                 fmt::format("{} wrong tokens came from {} within a minute; try again later",
                                             WrongTokens::max_attempts, origin)));
  if (const auto token = http::bearer_token(request.headers)) {
    if (auto known = context_.tokens.caller(*token, now)) return *known;
    wrong_tokens_.failed(origin, now);
    return tl::unexpected(refuse(K::unauthenticated,
                                 "the token is unknown or has expired; carve token create makes a new one"));
  }
  return tl::unexpected(
      refuse(K::unauthenticated,
             "the caller is not identified; send a token (Authorization: Bearer), or connect "
             "to the controller's unix socket, which names its user"));
}

// Every answer to a request that is no GET is in the audit log, also those that refuse.
http::Response ControllerRoutes::answer(const http::Request& request, const http::Caller& connection,
                                        const ReadDocuments* documents) {
  auto caller = identified(request, connection);
  http::Response response =
      caller ? answer_identified(request, *caller, connection, documents) : std::move(caller.error());
  if (request.method == "GET") return response;
  if (std::holds_alternative<http::LaterContent>(response.content))
    return response;  // It will be here again.
  const std::string address = connection.address();
  context_.audit({.caller = caller ? caller->text() : connection.text(),
                  .address = address.empty() ? "unix" : address,
                  .change = request.method.substr(0, max_shown_method_bytes) + " " +
                            request.path.substr(0, max_shown_path_bytes),
                  .status = response.status});
  return response;
}

http::Response ControllerRoutes::answer_identified(const http::Request& request, const http::Caller& caller,
                                                   const http::Caller& connection,
                                                   const ReadDocuments* documents) {
  if (const std::string* slice = caller.slice())
    return refuse(
        K::called_from_slice,
        fmt::format("process {} runs in slice {}; call the controller from a process outside, or with "
                    "a token",
                    caller.process()->pid, *slice));
  bool has_path = false;
  for (const Route& route : table) {
    auto parts = parts_of(request.path, route.path);
    if (!parts) continue;
    has_path = true;
    if (request.method != route.method) continue;
    const Call call{.context = context_,
                    .request = request,
                    .caller = caller,
                    .kind = parts->kind,
                    .names = std::move(parts->names),
                    .connection = &connection,
                    .documents = documents};
    http::Response response = context_.answers == nullptr
                                  ? route.answer(call)
                                  : answer_once(request, caller, *context_.answers, context_.views.now_ns(),
                                                [&] { return route.answer(call); });
    if (std::holds_alternative<http::LaterContent>(response.content)) return response;
    if (request.method == "GET")
      os::log::debug("{} {} by {}: {}", request.method, request.path, caller.text(), response.status);
    else
      os::log::info("{} {} by {}: {}", request.method, request.path, caller.text(), response.status);
    return response;
  }
  const std::string path = request.path.substr(0, max_shown_path_bytes);
  if (has_path)
    return refuse(K::invalid_argument,
                  fmt::format("{} has no method {}", path, request.method.substr(0, max_shown_method_bytes)),
                  405);
  std::vector<std::string_view> paths;
  for (const Route& route : table)
    if (std::ranges::find(paths, route.path) == paths.end()) paths.emplace_back(route.path);
  return refuse(K::not_found,
                fmt::format("there is no {}; the controller has {}", path, fmt::join(paths, ", ")));
}

http::Response refuse_bytes(unsigned status, std::string detail) {
  K kind = K::invalid_argument;
  for (const K other : {K::resource_exhausted, K::unauthenticated})
    if (status == shown(other).http_status) kind = other;
  return refuse(kind, std::move(detail), status);
}

}  // namespace carve::controller
