#include "controller/kubernetes/custom_resource_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/job_words.h"
#include "core/label.h"
#include "core/part.h"
#include "core/pool_words.h"
#include "core/request.h"
#include "core/slice.h"
#include "objects/autoscale_metric.h"
#include "objects/rules/cluster_check.h"
#include "objects/rules/pool_check.h"
#include "objects/rules/queue_check.h"
#include "objects/rules/service_terms.h"
#include "objects/tariff/budget_check.h"
#include "objects/tariff/tariff_check.h"
#include "wire/api/json.h"
#include "workload/job.h"

namespace carve::controller {
namespace {

using objects::max_seconds;

// In the form of an application, amounts may be numbers without quotes: `memory: 4096`.
constexpr const char* number_or_text = R"({"type":null,"default":null,"x-kubernetes-int-or-string":true})";
// The same for numbers with a fraction, which a schema can only accept together with every other value.
constexpr const char* any_value =
    R"({"type":null,"default":null,"x-kubernetes-preserve-unknown-fields":true})";
constexpr const char* image_text = R"({"maxLength":512,"pattern":"^([!-,.-~][!-~]*)?$"})";

std::string range(uint64_t low, uint64_t high) {
  return fmt::format(R"({{"minimum":{},"maximum":{}}})", low, high);
}
std::string most_items(size_t count) { return fmt::format(R"({{"maxItems":{}}})", count); }
std::string most_bytes(size_t count) { return fmt::format(R"({{"maxLength":{}}})", count); }

// Returns the words of the enumeration as the values of a field. `may_be_empty` adds the empty text.
template <Worded E>
std::string words(bool may_be_empty = false) {
  std::vector<std::string> out;
  if (may_be_empty) out.emplace_back(R"("")");
  for (const std::string_view word : Words<E>::words) out.push_back(api::quoted(std::string(word)));
  return fmt::format(R"({{"enum":[{}]}})", fmt::join(out, ","));
}

std::string name_pattern() {
  return fmt::format(R"({{"maxLength":{},"pattern":"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"}})",
                     objects::max_name_bytes);
}

std::vector<CelRule> toleration_rules() {
  const std::string each = "spec.tolerations[]";
  return {
      {each, "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
       "must be empty with operator Exists; leave it out, or use operator Equal", ".value"},
      {each, "(has(self.operator) && self.operator == 'Exists') || (has(self.key) && self.key != '')",
       "is required except with operator Exists, which then matches every key", ".key"},
  };
}

std::vector<FieldLimit> toleration_limits() {
  return {{"spec.tolerations", most_items(objects::max_tolerations)},
          {"spec.tolerations[].key", most_bytes(max_label_bytes)},
          {"spec.tolerations[].value", most_bytes(max_label_bytes)},
          {"spec.tolerations[].operator", words<TolerationOperator>()},
          {"spec.tolerations[].effect", words<TaintEffect>(true)}};
}

template <class T>
void append(std::vector<T>& out, const std::vector<T>& more) {
  out.insert(out.end(), more.begin(), more.end());
}

// Returns the rules that services and applications share.
CustomResourceRules workload_rules() {
  CustomResourceRules out{
      .columns = {{"Status", "string", ".status.phase"},
                  {"Ready", "integer", ".status.readyReplicas"},
                  {"Wanted", "integer", ".status.desiredReplicas"},
                  {"GPU", "string", ".status.gpu"},
                  {"Revision", "integer", ".status.revision"},
                  {"Restarts", "integer", ".status.restarts"},
                  {"Endpoint", "string", ".status.endpoint"},
                  {"Account", "string", ".metadata.labels.carve\\.dev/account", true}},
      .limits = {{"spec.replicas", range(0, workload::max_replicas)},
                 {"spec.run.image", image_text},
                 {"spec.run.workdir", R"({"pattern":"^(/[^\\x00-\\x1f\\x7f]*)?$"})"},
                 {"spec.port", range(1, UINT16_MAX)},
                 {"spec.readiness.httpGet.path", R"({"pattern":"^/[!-~]*$"})"},
                 {"spec.readiness.periodSeconds", range(1, max_seconds)},
                 {"spec.readiness.timeoutSeconds", range(1, max_seconds)},
                 {"spec.readiness.failureThreshold", range(1, 1000)},
                 {"spec.update.maxSurge", range(0, workload::max_replicas)},
                 {"spec.update.maxUnavailable", range(0, workload::max_replicas)},
                 {"spec.update.progressDeadlineSeconds", range(1, max_seconds)},
                 {"spec.terminationGracePeriodSeconds", range(0, max_seconds)}},
      .rules = {
          {"spec.run",
           "(has(self.command) && size(self.command) > 0) || (has(self.image) && self.image != '')",
           "there is nothing to run; add command, image or both"},
          {"spec.update",
           "(has(self.maxSurge) && self.maxSurge > 0) || (has(self.maxUnavailable) && self.maxUnavailable > "
           "0)",
           "maxSurge and maxUnavailable are both 0, so no replica could be replaced; set one to 1"},
          {"spec", "has(self.port) || !has(self.readiness) || !has(self.readiness.httpGet)",
           "a service without a port is not probed; add spec.port", ".readiness.httpGet"},
          {"spec", "has(self.run)", "is required: the program to run", ".run"},
      }};
  append(out.limits, toleration_limits());
  append(out.rules, toleration_rules());
  return out;
}

// Returns a rule that an exclusive replica leaves out the text field.
CelRule exclusive_without(const char* field) {
  return {"spec.gpu",
          fmt::format("!has(self.exclusive) || !self.exclusive || !has(self.{0}) || self.{0} == ''", field),
          fmt::format("an exclusive replica has whole devices; leave out {}", field),
          fmt::format(".{}", field)};
}

CustomResourceRules service_rules() {
  CustomResourceRules out = workload_rules();
  append(out.limits, {{"spec.targetPort", range(1, UINT16_MAX)},
                      {"spec.gpu.devices", range(1, max_slice_devices)},
                      {"spec.gpu.isolation", words<Isolation>(true)},
                      {"spec.gpu.policy", words<Policy>(true)},
                      {"spec.gpu.parts", most_items(max_slice_devices)},
                      {"spec.gpu.parts[].memory", most_bytes(64)},
                      {"spec.autoscale.min", range(1, workload::max_replicas)},
                      {"spec.autoscale.max", range(1, workload::max_replicas)},
                      {"spec.autoscale.metric", words<objects::AutoscaleMetric>()},
                      {"spec.autoscale.target", R"({"minimum":1})"}});
  append(
      out.rules,
      {exclusive_without("share"),
       exclusive_without("isolation"),
       {"spec.gpu", "!has(self.exclusive) || !self.exclusive || !has(self.parts) || size(self.parts) == 0",
        "an exclusive replica has whole devices; leave out parts", ".parts"},
       {"spec.gpu",
        "(has(self.exclusive) && self.exclusive) || (has(self.parts) && size(self.parts) > 0) || "
        "has(self.memory)",
        "the replica has no memory; add an amount, such as 4GiB or 50%, or set exclusive: true", ".memory"},
       {"spec.gpu.parts[]", "has(self.memory) && self.memory != ''",
        "the part has no memory; add an amount, such as 4GiB or 50%", ".memory"},
       {"spec", "!has(self.targetPort) || has(self.port)", "requires spec.port; add it", ".targetPort"},
       {"spec.autoscale", "(has(self.min) ? self.min : 1) <= (has(self.max) ? self.max : 1)",
        "must not be less than min", ".max"},
       {"spec",
        "has(self.port) || !has(self.autoscale) || (has(self.autoscale.metric) && self.autoscale.metric == "
        "'gpuUtilization')",
        "is measured at the service's port; add spec.port, or use gpuUtilization", ".autoscale.metric"}});
  return out;
}

CustomResourceRules application_rules() {
  CustomResourceRules out = workload_rules();
  append(out.limits, {{"spec.gpu.compute", any_value},
                      {"spec.gpu.memory", number_or_text},
                      {"spec.gpu.policy", words<Policy>(true)},
                      {"spec.gpu.devices", range(1, max_slice_devices)}});
  return out;
}

CustomResourceRules queue_rules() {
  return {.columns = {{"GPU", "string", ".spec.gpu"},
                      {"Pool", "string", ".spec.pool"},
                      {"Weight", "integer", ".spec.weight"},
                      {"Waiting", "integer", ".status.waiting"},
                      {"Running", "integer", ".status.running"},
                      {"Slices", "integer", ".status.slices"}},
          .limits = {{"spec.gpu", words<QueueGpu>()},
                     {"spec.billing", words<QueueBilling>()},
                     {"spec.weight", R"({"minimum":1})"},
                     {"spec.quota.memory", most_bytes(64)},
                     {"spec.quota.compute", R"({"pattern":"^([1-9][0-9]{0,8}%)?$"})"},
                     {"spec.computeGroups",
                      fmt::format(R"({{"minItems":1,"maxItems":{}}})", objects::max_compute_groups)},
                     {"spec.computeGroups[]", name_pattern()}},
          .rules = {{"spec.gpu", "self == oldSelf", "is immutable; delete the queue and make another one"},
                    {"spec.quota",
                     "(has(self.devices) && self.devices > 0) != ((has(self.memory) && self.memory != '') || "
                     "(has(self.compute) && self.compute != ''))",
                     "set either devices, or memory and compute"}}};
}

CustomResourceRules job_rules() {
  return {
      .columns = {{"Engine", "string", ".spec.engine"},
                  {"Queue", "string", ".spec.queue"},
                  {"Phase", "string", ".status.phase"},
                  {"Position", "integer", ".status.position"},
                  {"GPU", "string", ".status.gpu"},
                  {"Slices", "integer", ".status.slices"},
                  {"Reason", "string", ".status.reason", true}},
      .limits = {{"spec.queue", R"({"minLength":1})"},
                 {"spec.engine", words<JobEngine>()},
                 {"spec.run.command", R"({"minItems":1})"},
                 {"spec.run.image", image_text},
                 {"spec.run", R"({"required":["command"]})"},
                 {"spec", R"({"required":["queue","run"]})"},
                 {"spec.retries", range(0, workload::max_job_retries)}},
      .rules = {
          {"spec", "!has(self.workers) || self.workers == 1 || (has(self.engine) && self.engine == 'ray')",
           "has no effect except on a ray job", ".workers"},
          {"spec", "!has(self.tasks) || self.tasks == 1 || !has(self.engine) || self.engine == 'custom'",
           "has no effect except on a custom job", ".tasks"}}};
}

CustomResourceRules ray_cluster_rules() {
  return {.columns = {{"Queue", "string", ".spec.queue"},
                      {"Phase", "string", ".status.phase"},
                      {"Workers", "integer", ".status.slices"},
                      {"GPU", "string", ".status.gpu"},
                      {"Dashboard", "string", ".status.dashboard"},
                      {"Reason", "string", ".status.reason", true}},
          .limits = {{"spec", R"({"required":["queue","engineHome","workers"]})"},
                     {"spec.queue", R"({"minLength":1})"},
                     {"spec.engineHome", R"({"pattern":"^/[^:\\x00-\\x1f\\x7f]*$"})"},
                     {"spec.workers",
                      fmt::format(R"({{"minItems":1,"maxItems":{}}})", objects::max_worker_groups)},
                     {"spec.workers[].replicas", range(1, workload::max_job_slices)}},
          .rules = {}};
}

CustomResourceRules pool_rules() {
  return {
      .columns = {{"Type", "string", ".spec.type"},
                  {"Nodes", "integer", ".status.nodes"},
                  {"GPU", "integer", ".status.gpus"},
                  {"Running", "integer", ".status.runningGpuNodes"},
                  {"Sync", "boolean", ".spec.labelSync"}},
      .limits = {{"spec.bestEffort", words<BestEffortRule>()},
                 {"spec.taints", most_items(objects::max_pool_taints)},
                 {"spec.taints[].key", fmt::format(R"({{"minLength":1,"maxLength":{}}})", max_label_bytes)},
                 {"spec.taints[].value", most_bytes(max_label_bytes)},
                 {"spec.taints[].effect", words<TaintEffect>()},
                 {"spec.taints[]", R"({"required":["key","effect"]})"}},
      .rules = {}};
}

CustomResourceRules tariff_rules() {
  return {.columns = {{"From", "string", ".spec.from"},
                      {"Price", "string", ".spec.pricePerGpuHour"},
                      {"Currency", "string", ".spec.currency"},
                      {"Granularity", "string", ".spec.granularity"},
                      {"Minimum", "string", ".spec.minimum"}},
          .limits = {{"spec", R"({"required":["currency","from","pricePerGpuHour"]})"},
                     {"spec.currency", R"({"pattern":"^[A-Z]{3}$"})"},
                     {"spec.from", R"({"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?$"})"},
                     {"spec.pricePerGpuHour", R"({"pattern":"^[0-9]+(\\.[0-9]+)?$"})"},
                     {"spec.units", most_items(objects::max_tariff_units)},
                     {"spec.units[]", R"({"required":["model","gpuHourUnits"]})"},
                     {"spec.granularity", R"({"pattern":"^[0-9]+[smh]$"})"},
                     {"spec.minimum", R"({"pattern":"^[0-9]+[smh]$"})"}},
          .rules = {}};
}

CustomResourceRules budget_rules() {
  return {.columns = {{"Account", "string", ".spec.account"},
                      {"GPU-Hours", "string", ".spec.gpuHours"},
                      {"Amount", "string", ".spec.amount"},
                      {"Used", "string", ".status.used"},
                      {"Percent", "integer", ".status.percent"},
                      {"Then", "string", ".spec.then"},
                      {"Holds", "boolean", ".status.holds"}},
          .limits = {{"spec", R"({"required":["account"]})"},
                     {"spec.account", R"({"minLength":1})"},
                     {"spec.window", R"({"enum":["month"]})"},
                     {"spec.then", R"({"enum":["warn","hold"]})"},
                     {"spec.at", most_items(objects::max_budget_levels)},
                     {"spec.at[]", range(1, objects::max_budget_percent)}},
          .rules = {{"spec",
                     "(has(self.gpuHours) && self.gpuHours != '') != (has(self.amount) && self.amount != '')",
                     "set either gpuHours or amount"}}};
}

CustomResourceRules rules_of(objects::Kind kind) {
  using enum objects::Kind;
  switch (kind) {
    case service: return service_rules();
    case application: return application_rules();
    case pool: return pool_rules();
    case queue: return queue_rules();
    case job: return job_rules();
    case tariff: return tariff_rules();
    case budget: return budget_rules();
    case ray_cluster: return ray_cluster_rules();
    case node: break;
  }
  return {};
}

}  // namespace

CustomResourceRules custom_resource_rules(objects::Kind kind) {
  CustomResourceRules out = rules_of(kind);
  out.limits.push_back({"metadata.name", name_pattern()});
  out.columns.push_back({"Age", "date", ".metadata.creationTimestamp"});
  return out;
}

}  // namespace carve::controller
