#include "kubernetes/cli/doctor.h"

#include <algorithm>

#include "kubernetes/api/answers.h"
#include "kubernetes/format/json_pointer.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {
namespace {

using api::Json;

constexpr const char *deployed = "Deployed", *deploying = "Deploying", *failed = "Failed",
                     *unknown = "Unknown";
// ValidatingAdmissionPolicies are stable from 1.30 on.
const kubernetes::ServerVersion oldest_server{.major = 1, .minor = 30, .text = "1.30"};
constexpr size_t max_levels = 64;
constexpr const char* policy_names[] = {"carve-pods",   "carve-resizes",       "carve-bindings",
                                        "carve-nodes",  "carve-system-labels", "carve-resource-slices",
                                        "carve-claims", "carve-requests",      "carve-labels"};

constexpr const char* dra_gates[] = {"DynamicResourceAllocation", "DRAConsumableCapacity", "DRADeviceTaints",
                                     "DRAPartitionableDevices", "DRAExtendedResource"};

Json parsed(const Answer& answer) {
  if (!answer) return {};
  const auto out = api::parse(*answer, api::Decimals::as_doubles, max_levels);
  return out && out->is_object() ? *out : Json();
}

int64_t number_at(const Json& object, const char* pointer) {
  const Json::json_pointer at(pointer);
  return object.is_object() && object.contains(at) && object.at(at).is_number_integer()
             ? object.at(at).get<int64_t>()
             : 0;
}

// Returns a row for a part that the caller has no right to read, which is not reported as broken.
DoctorRow unread(const char* component, const std::string& problem) {
  return {component, problem.find("(Forbidden)") != std::string::npos ? unknown : failed, problem};
}

DoctorRow server(const Answer& answer) {
  if (!answer) return unread("API server", answer.error());
  const auto version = kubernetes::read_server_version(*answer);
  if (!version) return {"API server", failed, version.error()};
  if (*version < oldest_server)
    return {"API server", failed,
            fmt::format("Kubernetes {} is too old; Carve requires {} or newer", version->text,
                        oldest_server.text)};
  return {"API server", deployed, "Kubernetes " + version->text};
}

DoctorRow replicas(const char* name, const Answer& answer, const char* wanted_at, const char* ready_at) {
  if (!answer) return unread(name, answer.error());
  const Json object = parsed(answer);
  const int64_t wanted = number_at(object, wanted_at), ready = number_at(object, ready_at);
  return {name, ready >= wanted ? deployed : deploying, fmt::format("{} of {} ready", ready, wanted)};
}

DoctorRow agents(const Answer& answer) {
  DoctorRow row = replicas("agents", answer, "/status/desiredNumberScheduled", "/status/numberReady");
  if (answer && number_at(parsed(answer), "/status/desiredNumberScheduled") == 0) {
    row.state = deploying;
    row.reason = "no node has the agent's label; run kubectl label node NODE carve.dev/bookkeeper=extender";
  }
  return row;
}

DoctorRow webhook(const char* name, const Answer& answer) {
  if (!answer) return unread(name, answer.error());
  const Json object = parsed(answer);
  const auto webhooks = object.find("webhooks");
  if (webhooks == object.end() || !webhooks->is_array() || webhooks->empty())
    return {name, failed, "the webhook is missing; apply the manifests again"};
  const bool is_trusted = std::ranges::all_of(
      *webhooks, [](const Json& each) { return !text_at(each, "/clientConfig/caBundle").empty(); });
  if (!is_trusted) return {name, deploying, "caBundle is empty; the active coordinator writes it"};
  return {name, deployed, ""};
}

// A pod that requests only nvidia.com/gpu reaches the webhook only if the webhook's match condition contains
// that key.
DoctorRow webhook_of_pods(const Answer& answer, const Answer& settings) {
  DoctorRow row = webhook("webhook of pods", answer);
  if (row.state != deployed || text_at(parsed(settings), "/data/plainNvidiaGpu") != "whole") return row;
  const std::string condition = text_at(parsed(answer), "/webhooks/0/matchConditions/0/expression");
  if (condition.find("'nvidia.com/gpu'") != std::string::npos) return row;
  return {row.component, deploying,
          "plainNvidiaGpu is whole, but pods with only nvidia.com/gpu do not reach the webhook; apply the "
          "overlay plain-nvidia-gpu"};
}

DoctorRow policies(const Answer& answer) {
  if (!answer) return unread("policies", answer.error());
  const Json list = parsed(answer);
  std::vector<std::string> names;
  if (const auto items = list.find("items"); items != list.end() && items->is_array())
    for (const Json& item : *items) names.push_back(text_at(item, "/metadata/name"));
  std::string missing;
  for (const char* name : policy_names)
    if (std::ranges::find(names, name) == names.end())
      missing += (missing.empty() ? "" : ", ") + std::string(name);
  if (!missing.empty())
    return {"policies", failed, fmt::format("{}: missing; apply the manifests again", missing)};
  return {"policies", deployed, ""};
}

// Checks the feature gates that nodes with DRA need. All are on by default in Kubernetes 1.36.
DoctorRow feature_gates(const Answer& metrics) {
  if (!metrics) return unread("feature gates", metrics.error());
  std::string missing;
  for (const char* gate : dra_gates) {
    const size_t at = metrics->find(fmt::format("kubernetes_feature_enabled{{name=\"{}\",", gate));
    const size_t end = std::min(metrics->find('\n', std::min(at, metrics->size())), metrics->size());
    const bool is_on = at != std::string::npos && metrics->substr(at, end - at).ends_with("} 1");
    if (!is_on) missing += (missing.empty() ? "" : ", ") + std::string(gate);
  }
  if (missing.empty()) return {"feature gates", deployed, ""};
  return {
      "feature gates", failed,
      fmt::format(
          "{}: off or unknown, but nodes with carve.dev/bookkeeper=dra need it; Kubernetes 1.36 has it on "
          "by default",
          missing)};
}

DoctorRow nodes(const ClusterView* view) {
  if (view == nullptr) return {"nodes", failed, "the nodes cannot be listed"};
  if (!view->nodes_problem.empty()) return unread("nodes", view->nodes_problem);
  size_t usable = 0;
  std::string problems;
  for (const ViewNode& node : view->nodes) {
    usable += node.state.has_value() && node.problem.empty();
    if (!node.problem.empty())
      problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", node.object.name, node.problem);
  }
  const std::string count = fmt::format("{} of {} usable", usable, view->nodes.size());
  if (usable == view->nodes.size() && usable != 0) return {"nodes", deployed, count};
  return {"nodes", deploying, problems.empty() ? count : count + "; " + problems};
}

bool is_absent(const Answer& answer) {
  return !answer && (answer.error().find("(NotFound)") != std::string::npos ||
                     answer.error().find("not found") != std::string::npos);
}

}  // namespace

bool DoctorReport::has_failed() const {
  return std::ranges::any_of(
      components, [](const DoctorRow& row) { return row.state == failed || row.state == unknown; });
}

DoctorReport examine(const DoctorAnswers& answers, const ClusterView* view) {
  // If the server is unreachable, its row is the only one.
  if (!answers.version) return {{server(answers.version)}};
  if (is_absent(answers.deployment) && is_absent(answers.daemon_set) && is_absent(answers.mutating))
    return {{server(answers.version),
             {"Carve", failed, "not installed; run kubectl apply -k deploy/kubernetes/overlays/default"}}};
  DoctorReport out{
      {server(answers.version),
       answers.settings ? DoctorRow{"settings", deployed, ""} : unread("settings", answers.settings.error()),
       replicas("coordinator", answers.deployment, "/spec/replicas", "/status/readyReplicas"),
       webhook_of_pods(answers.mutating, answers.settings),
       webhook("webhook of settings", answers.validating), policies(answers.policies),
       agents(answers.daemon_set), nodes(view)}};
  if (answers.metrics) out.components.push_back(feature_gates(*answers.metrics));
  return out;
}

Table table_of(const DoctorReport& report) {
  Table out{.headings = {"COMPONENT", "STATE", "REASON"}, .rows = {}};
  for (const DoctorRow& row : report.components) out.rows.push_back({row.component, row.state, row.reason});
  return out;
}

}  // namespace carve::kubernetes::cli
