#include "kubernetes/cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "kubernetes/cli/consolidate.h"
#include "kubernetes/cli/doctor.h"
#include "kubernetes/cli/explain.h"
#include "kubernetes/cli/fleet_snapshot.h"
#include "kubernetes/cli/settings.h"
#include "kubernetes/cli/verb_tools.h"
#include "kubernetes/cli/view_claims.h"
#include "kubernetes/cli/views.h"
#include "kubernetes/coordinator/webhook/settings_review.h"
#include "objects/object.h"
#include "os/input_file.h"
#include "wire/api/percent.h"

namespace carve::kubernetes::cli {
namespace {

constexpr const char* apps_path = "/apis/apps/v1/namespaces/carve-system";
constexpr const char* admission_path = "/apis/admissionregistration.k8s.io/v1";

constexpr const char* no_nodes = R"({"kind":"NodeList","metadata":{"resourceVersion":"0"},"items":[]})";

constexpr const char* no_pods = R"({"kind":"PodList","metadata":{"resourceVersion":"0"},"items":[]})";

bool is_forbidden(const std::string& problem) { return problem.find("(Forbidden)") != std::string::npos; }

// Keeps only the nodes that the caller names. Fails if one of them does not exist.
Result<ClusterView, std::string> with_named_nodes(ClusterView view, const std::vector<std::string>& names) {
  if (names.empty()) return view;
  for (const std::string& name : names)
    if (std::ranges::none_of(view.nodes, [&](const ViewNode& node) { return node.object.name == name; }))
      return tl::unexpected(fmt::format("node '{}' does not exist or has no Carve agent", name));
  std::erase_if(view.nodes, [&](const ViewNode& node) {
    return std::ranges::find(names, node.object.name) == names.end();
  });
  return view;
}

// The lists that a verb needs.
enum class Needs : uint8_t { nodes, pods };

// Returns the claims of carve.dev; none if no node uses DRA. If the caller may not list those of all namespaces, the
// usage is a lower bound.
std::vector<ViewClaim> claims_in(const VerbOptions& options, ClusterView& cluster) {
  const bool uses_dra = std::ranges::any_of(cluster.nodes, [](const ViewNode& node) { return node.is_dra; });
  if (!uses_dra) return {};
  const auto list = get(options, "/apis/resource.k8s.io/v1/resourceclaims");
  auto claims =
      list ? read_claims(*list) : Result<std::vector<ViewClaim>, std::string>(tl::unexpected(list.error()));
  if (claims) return std::move(*claims);
  fmt::print(stderr, "kubectl-carve: warning: {}; the usage of claims is unknown\n", claims.error());
  cluster.has_all_pods = false;
  return {};
}

// Returns the selected nodes that have an agent, and all pods with slices. If the caller may not list the
// pods of all namespaces, it contains those of one namespace, or none if the verb needs no pods. If the
// caller may not list nodes, it contains no nodes.
Result<ClusterView, std::string> partial_view(const VerbOptions& options, Needs needs = Needs::pods) {
  const std::string selector =
      "carve.dev/node" + (options.selector.empty() ? std::string() : "," + options.selector);
  const auto nodes = get(options, "/api/v1/nodes?labelSelector=" + api::percent_encoded(selector));
  if (!nodes && !is_forbidden(nodes.error())) return tl::unexpected(nodes.error());
  const std::string query =
      "pods?labelSelector=" + api::percent_encoded("carve.dev/sliced=true") +
      "&fieldSelector=" + api::percent_encoded("status.phase!=Succeeded,status.phase!=Failed");
  auto pods = get(options, "/api/v1/" + query);
  const bool has_all = pods.has_value();
  if (!has_all) {
    if (!is_forbidden(pods.error())) return tl::unexpected(pods.error());
    fmt::print(stderr, "kubectl-carve: warning: {}; the usage of other namespaces is unknown\n",
               pods.error());
    pods = get(options,
               fmt::format("/api/v1/namespaces/{}/{}", api::percent_encoded(namespace_of(options)), query));
    if (!pods && needs == Needs::nodes && is_forbidden(pods.error())) pods = no_pods;
    if (!pods) return tl::unexpected(pods.error());
  }
  auto out = read_view(nodes ? *nodes : no_nodes, *pods);
  if (!out) return out;
  out->has_all_pods = has_all;
  if (!nodes) out->nodes_problem = nodes.error();
  return with_named_nodes(std::move(*out), options.nodes);
}

Result<ClusterView, std::string> view(const VerbOptions& options) {
  auto out = partial_view(options, Needs::nodes);
  if (out && !out->nodes_problem.empty())
    return tl::unexpected(fmt::format("{}; ClusterRole carve-viewer grants the rights that this verb needs",
                                      out->nodes_problem));
  return out;
}

struct ExplanationList {
  std::vector<Explanation> pods;
};

int print_explanations(const VerbOptions& options, const std::vector<Explanation>& pods) {
  Table table{.headings = {"POD", "NODES", "WHY"}, .rows = {}};
  for (const Explanation& pod : pods) {
    std::string nodes;
    for (const std::string& node : pod.nodes) nodes += (nodes.empty() ? "" : ",") + node;
    table.names.push_back("pod/" + pod.pod.substr(pod.pod.find('/') + 1));
    table.rows.push_back({pod.pod, nodes, pod.message});
  }
  return print(options, ExplanationList{pods}, table);
}

// Prints the coordinator's event for a caller who cannot list nodes.
int explain_by_events(const VerbOptions& options, const ClusterView& cluster, const std::string& name_space,
                      const std::string& name) {
  const auto events = get(
      options, fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events?fieldSelector={}",
                           api::percent_encoded(name_space), api::percent_encoded("regarding.name=" + name)));
  const std::string reason = events ? newest_reason(*events) : "";
  if (!reason.empty())
    return print_explanations(options, {{.pod = name_space + "/" + name, .message = reason, .nodes = {}}});
  return complain(fmt::format("pod {}/{} is waiting, but no event explains why yet; {}", name_space, name,
                              cluster.nodes_problem));
}

// Explains a pod that gets its devices with resource claims. Returns no value if it has no claim of carve.dev.
std::optional<Explanation> explain_by_claims(const VerbOptions& options, ClusterView cluster,
                                             const std::string& name_space, const std::string& name) {
  const auto pod = get(options, fmt::format("/api/v1/namespaces/{}/pods/{}", api::percent_encoded(name_space),
                                            api::percent_encoded(name)));
  if (!pod) return std::nullopt;
  const std::vector<ViewClaim> claims = claims_in(options, cluster);
  add_claims(cluster, claims);
  auto why = explain_claims(cluster, claims, *pod);
  return why ? std::optional(std::move(*why)) : std::nullopt;
}

int explain_one(const VerbOptions& options, const ClusterView& cluster) {
  const auto name = pod_name(options.pod);
  if (!name) return complain(name.error());
  const std::string name_space = namespace_of(options);
  const auto why = explain_pod(cluster, name_space, *name);
  if (!why) {
    if (const auto claims = explain_by_claims(options, cluster, name_space, *name))
      return print_explanations(options, {*claims});
    return complain(why.error());
  }
  if (!cluster.nodes_problem.empty() && why->nodes.empty())
    return explain_by_events(options, cluster, name_space, *name);
  return print_explanations(options, {*why});
}

Result<coordinator::ClusterSettings, std::string> settings_of(const VerbOptions& options) {
  const auto object = get(options, std::string(system_path) + "/configmaps/carve-settings");
  if (!object) return tl::unexpected(object.error());
  const auto read = coordinator::read_settings_object(*object);
  if (!read) return tl::unexpected(read.error().front().message);
  return *read;
}

coordinator::PodsInUnits pods_in_units(const ClusterView& cluster) {
  coordinator::PodsInUnits out;
  for (const coordinator::ClusterPod& pod : cluster.pods)
    if (pod.request)
      for (const auto& [container, amounts] : pod.request->containers)
        if (amounts.unit) out[*amounts.unit].push_back(pod.full_name());
  return out;
}

}  // namespace

int show_nodes(const VerbOptions& options) {
  auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  add_claims(*cluster, claims_in(options, *cluster));
  const auto settings = get(options, std::string(system_path) + "/configmaps/carve-settings");
  const NodeList rows = node_rows(*cluster, settings ? unit_in_effect(*settings) : std::nullopt, options.by);
  return print(options, rows, table_of(rows, options.form));
}

int show_devices(const VerbOptions& options) {
  auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  add_claims(*cluster, claims_in(options, *cluster));
  const DeviceList rows = device_rows(*cluster);
  return print(options, rows, table_of(rows, options.form));
}

int show_slices(const VerbOptions& options) {
  auto cluster = partial_view(options);
  if (!cluster) return complain(cluster.error());
  SliceList rows = slice_rows(*cluster, options.name_space);
  add_claims(rows, *cluster, claims_in(options, *cluster), options.name_space);
  return print(options, rows, table_of(rows, options.form));
}

int show_explanation(const VerbOptions& options) {
  const auto cluster = options.file.empty() ? partial_view(options) : view(options);
  if (!cluster) return complain(cluster.error());
  if (options.file.empty()) return explain_one(options, *cluster);
  const auto manifests = os::read_input(options.file, api::max_document_bytes);
  if (!manifests) return complain(manifests.error());
  const auto settings = settings_of(options);
  if (!settings) return complain(settings.error());
  std::vector<std::string> models;
  for (const DeviceRow& row : device_rows(*cluster).devices) models.push_back(row.model);
  const auto why =
      explain_manifests(*cluster, *manifests, coordinator::pod_settings(*settings, std::move(models)));
  if (why && why->empty())
    return complain(
        "no pod in the manifests requests a slice, or the kind of a manifest is unknown; see kubectl carve "
        "translate");
  if (why) return print_explanations(options, *why);
  for (const api::FieldError& error : why.error()) complain(error.message);
  return failed_status;
}

int show_consolidation(const VerbOptions& options) {
  const auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  const ConsolidationList plan = consolidation_of(*cluster, options.devices);
  const std::string table = plan.moves.empty() ? "" : table_text(table_of(plan), options.headings);
  if (const int status = print(options, plan, table + summary(plan) + "\n"); status != 0) return status;
  return plan.emptied.size() < options.devices ? failed_status : 0;
}

int show_settings(const VerbOptions& options) {
  const auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  const auto object = get(options, std::string(system_path) + "/configmaps/carve-settings");
  if (!object) return complain(object.error());
  const auto rows = setting_rows(*object, pods_in_units(*cluster));
  if (rows) return print(options, *rows, table_of(*rows));
  for (const api::FieldError& error : rows.error()) complain(error.message);
  return failed_status;
}

int show_snapshot(const VerbOptions& options) {
  const auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  std::vector<std::string> left_out;
  const FleetSnapshot snapshot = snapshot_of(*cluster, left_out);
  for (const std::string& one : left_out) fmt::print(stderr, "kubectl-carve: warning: left out: {}\n", one);
  return print_text(options, document_text(api::write(snapshot), Form::json));
}

int show_doctor(const VerbOptions& options) {
  const auto version = get(options, "/version");
  if (!version) {
    const Answer none = tl::unexpected(version.error());
    const DoctorReport report = examine({version, none, none, none, none, none, none}, nullptr);
    print(options, report, table_of(report));
    return failed_status;
  }
  DoctorAnswers answers{
      .version = version,
      .deployment = get(options, std::string(apps_path) + "/deployments/carve-coordinator"),
      .daemon_set = get(options, std::string(apps_path) + "/daemonsets/carve-agent"),
      .mutating = get(options, std::string(admission_path) + "/mutatingwebhookconfigurations/carve"),
      .validating = get(options, std::string(admission_path) + "/validatingwebhookconfigurations/carve"),
      .policies = get(options, std::string(admission_path) + "/validatingadmissionpolicybindings"),
      .settings = get(options, std::string(system_path) + "/configmaps/carve-settings")};
  const auto cluster = partial_view(options, Needs::nodes);
  if (cluster && std::ranges::any_of(cluster->nodes, &ViewNode::is_dra))
    answers.metrics = get(options, "/metrics");
  const DoctorReport report = examine(answers, cluster ? &*cluster : nullptr);
  const int status = print(options, report, table_of(report));
  return report.has_failed() ? failed_status : status;
}

}  // namespace carve::kubernetes::cli
