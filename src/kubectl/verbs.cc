#include "kubectl/verbs.h"

#include <fmt/format.h>

#include <cstdio>

#include "cluster/webhook/settings_review.h"
#include "kubectl/consolidate.h"
#include "kubectl/doctor.h"
#include "kubectl/explain.h"
#include "kubectl/fleet_snapshot.h"
#include "kubectl/settings.h"
#include "kubectl/verb_tools.h"
#include "kubectl/views.h"
#include "os/input_file.h"
#include "wire/objects/object.h"

namespace carve::kubectl {
namespace {

constexpr const char* apps_path = "/apis/apps/v1/namespaces/carve-system";
constexpr const char* admission_path = "/apis/admissionregistration.k8s.io/v1";

// The nodes of the selector that have an agent, and all pods with slices. A caller who may not list the pods
// of all namespaces sees those of one.
Result<ClusterView, std::string> view(const VerbOptions& options) {
  const std::string selector =
      "carve.dev/node" + (options.selector.empty() ? std::string() : "," + options.selector);
  const auto nodes = get(options, "/api/v1/nodes?labelSelector=" + escaped(selector));
  if (!nodes) return tl::unexpected(nodes.error());
  const std::string query = "pods?labelSelector=" + escaped("carve.dev/sliced=true") +
                            "&fieldSelector=" + escaped("status.phase!=Succeeded,status.phase!=Failed");
  auto pods = get(options, "/api/v1/" + query);
  const bool has_all = pods.has_value();
  if (!has_all) {
    if (options.name_space.empty()) return tl::unexpected(pods.error());
    fmt::print(stderr, "kubectl-carve: warning: {}; what is used by other namespaces is not known\n",
               pods.error());
    pods = get(options, fmt::format("/api/v1/namespaces/{}/{}", escaped(options.name_space), query));
    if (!pods) return tl::unexpected(pods.error());
  }
  auto out = read_view(*nodes, *pods);
  if (out) out->has_all_pods = has_all;
  return out;
}

Result<cluster::ClusterSettings, std::string> settings_of(const VerbOptions& options) {
  const auto object = get(options, std::string(system_path) + "/configmaps/carve-settings");
  if (!object) return tl::unexpected(object.error());
  const auto read = cluster::read_settings_object(*object);
  if (!read) return tl::unexpected(read.error().front().sentence);
  return *read;
}

cluster::PodsInUnits pods_in_units(const ClusterView& cluster) {
  cluster::PodsInUnits out;
  for (const cluster::ClusterPod& pod : cluster.pods)
    if (pod.request)
      for (const auto& [container, amounts] : pod.request->containers)
        if (amounts.unit) out[*amounts.unit].push_back(pod.full_name());
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
    table.rows.push_back({pod.pod, nodes, pod.sentence});
  }
  return print(options, ExplanationList{pods}, table);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const unsigned char c : text)
    if (isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~')
      out += static_cast<char>(c);
    else
      out += fmt::format("%{:02X}", c);
  return out;
}

int show_nodes(const VerbOptions& options) {
  const auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  const auto settings = settings_of(options);
  const NodeList rows =
      node_rows(*cluster, settings ? std::optional(settings->unit) : std::nullopt, options.by);
  return print(options, rows, table_of(rows, options.form));
}

int show_devices(const VerbOptions& options) {
  const auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  const DeviceList rows = device_rows(*cluster);
  return print(options, rows, table_of(rows, options.form));
}

int show_slices(const VerbOptions& options) {
  const auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  const SliceList rows = slice_rows(*cluster, options.name_space);
  return print(options, rows, table_of(rows, options.form));
}

int show_explanation(const VerbOptions& options) {
  const auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  if (options.file.empty()) {
    const auto why =
        explain_pod(*cluster, options.name_space.empty() ? "default" : options.name_space, options.pod);
    return why ? print_explanations(options, {*why}) : complain(why.error());
  }
  const auto manifests = os::read_input(options.file, objects::max_document_bytes);
  if (!manifests) return complain(manifests.error());
  const auto settings = settings_of(options);
  if (!settings) return complain(settings.error());
  std::vector<std::string> models;
  for (const DeviceRow& row : device_rows(*cluster).devices) models.push_back(row.model);
  const auto why =
      explain_manifests(*cluster, *manifests, cluster::pod_settings(*settings, std::move(models)));
  if (why && why->empty())
    return complain(
        "no pod of the manifests asks for a slice, or its kind is not known; see kubectl carve translate");
  if (why) return print_explanations(options, *why);
  for (const api::FieldError& error : why.error()) complain(error.sentence);
  return failed_status;
}

int show_consolidation(const VerbOptions& options) {
  const auto cluster = view(options);
  if (!cluster) return complain(cluster.error());
  const ConsolidationList plan = consolidation_of(*cluster, options.devices);
  const std::string table = plan.moves.empty() ? "" : table_text(table_of(plan));
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
  for (const api::FieldError& error : rows.error()) complain(error.sentence);
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
  const DoctorAnswers answers{
      .version = get(options, "/version"),
      .deployment = get(options, std::string(apps_path) + "/deployments/carve-coordinator"),
      .daemon_set = get(options, std::string(apps_path) + "/daemonsets/carve-agent"),
      .mutating = get(options, std::string(admission_path) + "/mutatingwebhookconfigurations/carve"),
      .validating = get(options, std::string(admission_path) + "/validatingwebhookconfigurations/carve"),
      .policies = get(options, std::string(admission_path) + "/validatingadmissionpolicybindings"),
      .settings = get(options, std::string(system_path) + "/configmaps/carve-settings")};
  const auto cluster = view(options);
  const DoctorReport report = examine(answers, cluster ? &*cluster : nullptr);
  const int status = print(options, report, table_of(report));
  return report.has_failed() ? failed_status : status;
}

}  // namespace carve::kubectl
