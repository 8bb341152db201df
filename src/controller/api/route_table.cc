// The table of the controller's routes.
#include <algorithm>
#include <iterator>

#include "controller/api/access_routes.h"
#include "controller/api/agent_routes.h"
#include "controller/api/bill_routes.h"
#include "controller/api/controller_routes.h"
#include "controller/api/event_routes.h"
#include "controller/api/history_routes.h"
#include "controller/api/job_routes.h"
#include "controller/api/kind_routes.h"
#include "controller/api/node_routes.h"
#include "controller/api/object_routes.h"
#include "controller/api/openapi.h"
#include "controller/api/pool_routes.h"
#include "controller/api/render_routes.h"
#include "controller/api/session_routes.h"
#include "controller/api/token_routes.h"
#include "controller/api/watch_routes.h"
#include "controller/api/workload_routes.h"

namespace carve::controller {
namespace {

using objects::Kind;

http::Response get_version(const Call& call) { return document(call.context.views.version()); }

http::Response get_openapi(const Call& call) {
  static const std::string text = openapi_document(routes(), call.context.views.version().version);
  return {200, "application/json", text};
}

http::Response get_metrics(const Call& call) {
  const api::MetricsFormat format = api::metrics_format(call.request.headers.find("Accept"));
  return {200, api::metrics_type(format), call.context.views.metrics(format, call.caller)};
}

std::vector<Route> node_routes() {
  return {
      {"GET", "/v1/nodes", list_nodes, "Lists the nodes with their devices.", "NodeList"},
      {"GET", "/v1/nodes/{}", get_node, "Shows one node.", "Node"},
      {"PATCH", "/v1/nodes/{}", patch_node, "Changes the labels and settings of a node with a merge patch.",
       "Node", "any", "namespace whenFree"},
      {"POST", "/v1/nodes/{}/drain", drain_node,
       "Cordons a node and moves the replicas of services from it to other nodes.", "any"},
      {"POST", "/v1/nodes/{}/end-slices", end_node_slices, "Ends the slices that run on a node.", "any"},
      {"POST", "/v1/nodes/{}/restart", restart_node,
       "Puts the desired settings of a node into effect when its slices have ended.", "any", "",
       "namespace force"},
      {"POST", "/v1/nodes/{}/start", start_node, "Starts a stopped node.", "any"},
      {"POST", "/v1/nodes/{}/stop", stop_node, "Stops a node.", "any", "", "namespace force"},
      events_route(Kind::node),
      {"GET", "/v1/nodes/{}/version", see_agent, "Shows the agent of a node.", "any"},
      {"GET", "/v1/nodes/{}/node", see_agent, "Shows the settings of a node's agent.", "any"},
      {"GET", "/v1/nodes/{}/doctor", see_agent, "Shows what the agent of a node can and cannot enforce.",
       "any"},
      {"GET", "/v1/nodes/{}/devices", list_agent_devices, "Lists the devices of a node.", "DeviceList"},
  };
}

// Returns the routes that the agent serves.
std::vector<Route> slice_routes() {
  return {
      {"GET", "/v1/nodes/{}/slices", list_agent_slices, "Lists the slices of a node that the caller may see.",
       "SliceList", "", "all"},
      {"POST", "/v1/nodes/{}/slices", create_agent_slice, "Creates a slice on a node.", "Slice",
       "SliceRequest"},
      {"POST", "/v1/nodes/{}/explain", explain_on_agent,
       "Shows where a slice would be placed on a node, and why not elsewhere.", "Explanation",
       "SliceRequest"},
      {"GET", "/v1/nodes/{}/slices/{}", get_agent_slice, "Shows one slice of a node.", "Slice"},
      {"PATCH", "/v1/nodes/{}/slices/{}", change_agent_slice, "Changes the terms of a slice of a node.",
       "Slice", "SliceChange", "dryRun"},
      {"DELETE", "/v1/nodes/{}/slices/{}", change_agent_slice, "Ends a slice of a node.", "Slice"},
      {"POST", "/v1/nodes/{}/slices/{}/thaw", operate_agent, "Thaws a slice that the audit froze.", "Slice"},
      {"GET", "/v1/nodes/{}/consolidation", operate_agent,
       "Shows the moves that would empty devices of a node.", "any", "", "devices"},
      {"GET", "/v1/nodes/{}/agent-events", operate_agent, "Lists the newest events of a node's agent.",
       "any"},
      {"GET", "/v1/nodes/{}/trace", operate_agent, "Shows which slice held which device of a node, and when.",
       "any", "", "seconds"},
      {"GET", "/v1/nodes/{}/usage", operate_agent, "Lists the usage records of a node by id.", "any", "",
       "after"},
      {"GET", "/v1/nodes/{}/metrics", operate_agent, "Prints the metrics of a node's agent.", "text"},
  };
}

// Returns the routes of objects with replicas, in addition to those of every kind.
std::vector<Route> workload_routes() {
  return {
      events_route({}),
      logs_route({}),
      {"GET", "/v1/{kind}/{}/revisions", get_revisions, "Lists the kept revisions of an object.",
       "RevisionList", "", "namespace"},
      {"GET", "/v1/{kind}/{}/revisions/{}", get_revision, "Shows an object with the spec of a kept revision.",
       "Kind", "", "namespace"},
      {"POST", "/v1/{kind}/{}/modify", modify,
       "Changes fields of the PAI-EAS document that a service was made from.", "Kind", "EasChanges",
       "namespace"},
      {"POST", "/v1/{kind}/{}/restart", restart, "Replaces every replica of an object with a new one.",
       "Kind", "", "namespace"},
      {"POST", "/v1/{kind}/{}/start", start, "Starts the replicas of a stopped object.", "Kind", "",
       "namespace"},
      {"POST", "/v1/{kind}/{}/stop", stop, "Stops the replicas of an object and keeps the object.", "Kind",
       "", "namespace"},
      {"POST", "/v1/{kind}/{}/undo", undo, "Returns an object to an earlier revision.", "Kind", "UndoRequest",
       "namespace"},
  };
}

void append(std::vector<Route>& out, std::vector<Route> more) {
  std::ranges::move(more, std::back_inserter(out));
}

std::vector<Route> session_routes() {
  return {
      {"POST", "/v1/codes", post_code,
       "Creates a code that signs a browser in to the console with the rights of the caller.", "SignInCode"},
      {"GET", "/v1/session", get_session, "Shows the role and the account of the caller.", "SessionView"},
      {"GET", "/v1/audit", get_audit, "Lists the newest requests that changed something, or attempted to.",
       "AuditList"},
      {"GET", "/v1/access", get_access,
       "Shows whether the caller may use a verb on objects of a kind, or on one object.", "Access", "",
       "verb kind name namespace"},
      {"POST", "/v1/session", post_session, "Begins a session of a browser with a code or a token.",
       "SessionView", "SignInRequest"},
      {"DELETE", "/v1/session", delete_session, "Ends the session of the caller.", "Nothing"},
      {"GET", "/v1/tokens", list_tokens, "Lists the tokens and sessions without their secrets.", "TokenList"},
      {"POST", "/v1/tokens", post_token, "Creates a token and shows it once.", "TokenMade", "TokenRequest"},
      {"DELETE", "/v1/tokens/{}", delete_token, "Deletes a token or ends a session.", "Nothing"},
  };
}

std::vector<Route> all_routes() {
  std::vector<Route> out = {
      {"GET", "/v1/version", get_version,
       "Shows the version, the process and the state directory of the controller.", "ControllerVersion"},
  };
  append(out, node_routes());
  append(out, slice_routes());
  append(out, object_routes(Kind::pool));
  append(out, {{"GET", "/v1/pools/{}/slicing", get_slicing,
                "Shows whether the devices of a node pool can be sliced.", "Slicing"},
               events_route(Kind::pool)});
  append(out, object_routes(Kind::queue));
  append(out, {events_route(Kind::queue)});
  append(out, object_routes(Kind::job));
  append(out, {{"POST", "/v1/jobs/{}/cancel", cancel_job, "Ends a job.", "Job", "", "namespace", Kind::job},
               events_route(Kind::job),
               logs_route(Kind::job)});
  append(out, object_routes(Kind::ray_cluster));
  append(out, {events_route(Kind::ray_cluster),
               logs_route(Kind::ray_cluster),
               {"POST", "/v1/parameters", read_job_parameters,
                "Reads the parameters of a job from their text, in any of the vendor's three forms.",
                "JobParameters", "text"}});
  for (const objects::KindText& kind : objects::kinds)
    if (is_plain(kind.value)) {
      append(out, object_routes(kind.value));
      append(out, {events_route(kind.value)});
    }
  append(out, {
                  {"GET", "/v1/bills", get_bill,
                   "Shows the invoice of a period, by default the current month; as CSV if the request "
                   "accepts text/csv.",
                   "Bill", "", "from to by account labelSelector lines idle format"},
                  {"GET", "/v1/bills/lines/{}", get_bill_line,
                   "Shows the lines of one part of a usage record.", "Bill", "", "from to"},
                  {"GET", "/v1/allocations", get_allocations,
                   "Shows who held slices in a period, and how much of them was idle.", "Allocations", "",
                   "from to by account labelSelector step"},
                  {"GET", "/v1/history", get_history, "Shows metrics of a slice or a device over time.",
                   "MetricHistory", "", "metric object from to step"},
                  {"GET", "/v1/events", list_events, "Lists the events of all objects.", "ObjectEventList",
                   "", "namespace limit"},
                  {"GET", "/v1/watch", watch,
                   "Streams the objects, then each change to them, as server-sent events.", "events", "",
                   "kinds namespace labelSelector resourceVersion"},
                  {"POST", "/v1/documents", post_documents, "Applies documents: all of them, or none.",
                   "AppliedList", "any", "dialect dryRun explain diff create"},
                  {"POST", "/v1/render", render_documents, "Prints documents as Kubernetes manifests.",
                   "Rendered", "any", "dialect"},
              });
  append(out, object_routes({}));
  append(out, workload_routes());
  append(out, session_routes());
  append(out, {
                  {"GET", "/openapi.json", get_openapi, "Shows this description of the API.", "any"},
                  {"GET", "/metrics", get_metrics,
                   "Prints the metrics of services, queues, pools and accounts.", "text"},
              });
  return out;
}

}  // namespace

std::span<const Route> routes() {
  static const std::vector<Route> all = all_routes();
  return all;
}

}  // namespace carve::controller
