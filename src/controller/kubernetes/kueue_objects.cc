#include "controller/kubernetes/kueue_objects.h"

#include <algorithm>

#include "controller/kubernetes/made_kinds.h"
#include "controller/objects/job_form.h"
#include "core/invariant.h"
#include "dialects/pod/keys.h"
#include "objects/error_list.h"
#include "objects/rules/queue_check.h"

namespace carve::controller {
namespace {

using api::Json;

constexpr uint64_t hundred = 100;
constexpr const char* slices_flavor = "carve-slices";  // The flavor of the resource `pods`.

std::string pool_name(const std::string& pool) { return pool.empty() ? "carve" : "carve-" + pool; }

// Returns a group of resources with one flavor.
Json quota_group(const std::string& flavor, const std::vector<std::pair<const char*, uint64_t>>& quotas) {
  Json names = Json::array(), amounts = Json::array();
  for (const auto& [resource, quota] : quotas) {
    names.push_back(resource);
    amounts.push_back(Json{{"name", resource}, {"nominalQuota", fmt::format("{}", quota)}});
  }
  Json out{{"coveredResources", std::move(names)}};
  out["flavors"] = Json::array();
  out["flavors"].push_back(Json{{"name", flavor}, {"resources", std::move(amounts)}});
  return out;
}

// Creates the objects of one queue; each function creates one kind.
class QueueRendering {
 public:
  QueueRendering(const Object& queue, const QueueUse& use)
      : queue_(queue), spec_(queue_spec(queue)), use_(use) {}

  Result<OwnedObjects, api::FieldErrors> run() {
    check_quota();
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    OwnedObjects out;
    out.objects.push_back(flavor(pool_name(spec_.pool), spec_.pool));
    if (spec_.max_slices != 0) out.objects.push_back(flavor(slices_flavor, ""));
    out.objects.push_back(queue());
    for (const std::string& name_space : use_.namespaces) out.objects.push_back(entrance(name_space));
    for (const int32_t priority : use_.priorities)
      if (priority != 0) out.objects.push_back(class_of(priority));
    if (spec_.max_running != 0)
      out.warnings.push_back(fmt::format("spec.maxRunning {} has no effect on a cluster; set spec.maxSlices",
                                         spec_.max_running));
    return out;
  }

 private:
  // Without a node's devices, whole devices and bytes cannot be converted into each other.
  void check_quota() {
    if (!spec_.quota) return;
    if (spec_.gpu.value() == QueueGpu::mgpu && spec_.quota->devices != 0)
      errors_.add("spec.quota.devices", fmt::format("{}", spec_.quota->devices),
                  "a queue of parts of devices is counted in memory and compute on a cluster; set both");
    if (spec_.gpu.value() == QueueGpu::gpu && spec_.quota->devices == 0)
      errors_.add("spec.quota", "",
                  "a queue of whole devices is counted in devices on a cluster; set devices");
  }

  Json named(const char* kind, const std::string& name, const std::string& name_space = "") const {
    Json out{{"apiVersion", kueue_version}, {"kind", kind}, {"metadata", {{"name", name}}}};
    Json& metadata = out["metadata"];
    if (!name_space.empty()) metadata["namespace"] = name_space;
    metadata["labels"][managed_by_label] = managed_by_carve;
    const bool is_shared = made_kind(kind).is_shared;
    metadata["ownerReferences"] = Json::array();
    metadata["ownerReferences"].push_back(owner_reference(queue_, /*is_controller=*/!is_shared));
    if (!is_shared) metadata["annotations"][applied_annotation] = applied_mark(queue_);
    return out;
  }

  // Every owner applies the same shared object, so its mark depends only on what it contains.
  static Json marked(Json shared, const Json& content) {
    shared["metadata"]["annotations"][applied_annotation] = digest_of(content.dump());
    return shared;
  }

  Json flavor(const std::string& name, const std::string& pool) const {
    Json out = named(resource_flavor, name);
    out["spec"] = Json::object();
    if (!pool.empty()) out["spec"]["nodeLabels"][pool_label] = pool;
    return marked(out, out["spec"]);
  }

  Json class_of(int32_t priority) const {
    Json out = named(priority_class, priority_class_name(priority));
    out["value"] = priority;
    return marked(out, out["value"]);
  }

  Json entrance(const std::string& name_space) const {
    Json out = named(local_queue, queue_.key.name, name_space);
    out["spec"]["clusterQueue"] = queue_.key.name;
    return out;
  }

  Json groups() const {
    Json out = Json::array();
    const workload::Amount quota =
        objects::workload_queue(queue_.key.name, spec_, 0).quota.value_or(workload::Amount());
    const uint64_t devices = spec_.quota ? spec_.quota->devices : 0;
    const std::string flavor = pool_name(spec_.pool);
    if (spec_.gpu.value() == QueueGpu::gpu)
      out.push_back(quota_group(flavor, {{dialects::keys::devices, devices}}));
    if (spec_.gpu.value() == QueueGpu::mgpu)
      out.push_back(quota_group(flavor, {{dialects::keys::memory, quota.memory.count},
                                         {dialects::keys::compute, quota.compute_bp / percent_bp}}));
    if (spec_.max_slices != 0) {
      Json slices = quota_group(slices_flavor, {{"pods", spec_.max_slices}});
      Json& limits = slices["flavors"][0]["resources"][0];
      for (const char* limit : {"borrowingLimit", "lendingLimit"}) limits[limit] = "0";
      out.push_back(std::move(slices));
    }
    return out;
  }

  Json queue() const {
    Json out = named(cluster_queue, queue_.key.name);
    out["spec"] = {{"cohortName", pool_name(spec_.pool)},
                   {"namespaceSelector", Json::object()},
                   {"queueingStrategy", spec_.backfill ? "BestEffortFIFO" : "StrictFIFO"},
                   {"fairSharing", {{"weight", fmt::format("{}", spec_.weight)}}},
                   {"preemption", {{"reclaimWithinCohort", "Never"}, {"withinClusterQueue", "Never"}}}};
    if (Json all = groups(); !all.empty()) out["spec"]["resourceGroups"] = std::move(all);
    return out;
  }

  const Object& queue_;
  const objects::QueueSpec& spec_;
  const QueueUse& use_;
  objects::ErrorList errors_;
};

}  // namespace

Result<OwnedObjects, api::FieldErrors> queue_objects(const Object& queue, const QueueUse& use) {
  invariant(queue.key.kind == objects::Kind::queue, "only queues have such objects");
  return QueueRendering(queue, use).run();
}

Json cohort_object(const std::string& pool, const std::vector<const Object*>& queues,
                   const DeviceAmounts& capacity) {
  invariant(!queues.empty(), "a cohort belongs to its queues");
  const std::string name = pool_name(pool);
  Json out{{"apiVersion", kueue_version}, {"kind", kueue_cohort}, {"metadata", {{"name", name}}}};
  Json& metadata = out["metadata"];
  metadata["labels"][managed_by_label] = managed_by_carve;
  metadata["ownerReferences"] = Json::array();
  const uint64_t device_bytes =
      capacity.compute_percent == 0 ? 0 : capacity.memory_bytes * hundred / capacity.compute_percent;
  uint64_t memory = 0, compute = 0;
  for (const Object* queue : queues) {
    metadata["ownerReferences"].push_back(owner_reference(*queue, /*is_controller=*/false));
    const workload::Amount quota = objects::workload_queue(queue->key.name, queue_spec(*queue), device_bytes)
                                       .quota.value_or(workload::Amount());
    memory += quota.memory.count;
    compute += quota.compute_bp / percent_bp;
  }
  memory = capacity.memory_bytes - std::min(memory, capacity.memory_bytes);
  compute = capacity.compute_percent - std::min(compute, capacity.compute_percent);
  out["spec"]["resourceGroups"] = Json::array();
  out["spec"]["resourceGroups"].push_back(quota_group(name, {{dialects::keys::memory, memory},
                                                             {dialects::keys::compute, compute},
                                                             {dialects::keys::devices, compute / hundred}}));
  const std::string content = out["spec"].dump() + metadata["ownerReferences"].dump();
  metadata["annotations"][applied_annotation] = digest_of(content);
  return out;
}

std::string priority_class_name(int32_t priority) {
  return priority < 0 ? fmt::format("carve-minus-{}", -int64_t{priority}) : fmt::format("carve-{}", priority);
}

}  // namespace carve::controller
