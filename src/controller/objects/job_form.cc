#include "controller/objects/job_form.h"

#include <algorithm>

#include "objects/rules/cluster_check.h"
#include "objects/rules/job_check.h"
#include "objects/rules/queue_check.h"

namespace carve::controller {
namespace {

std::vector<workload::PodSpec> pod_specs(const engines::EnginePods& pods) {
  std::vector<workload::PodSpec> out;
  for (const engines::PodGroup& group : pods.groups)
    for (uint32_t index = 0; index < group.count; ++index)
      out.push_back({.id = {group.role, index}, .needs_slice = group.has_gpu});
  return out;
}

}  // namespace

objects::JobSpec job_spec(const Object& object) {
  if (object.key.kind == objects::Kind::ray_cluster)
    return objects::job_of_cluster(object.spec.as<objects::RayClusterSpec>());
  return object.spec.as<objects::JobSpec>();
}

namespace {

Result<engines::EnginePods, api::FieldErrors> pods_in_queue(const Object& object,
                                                            const objects::JobSpec& spec,
                                                            engines::QueueTerms queue,
                                                            const DeviceSizes& sizes) {
  if (object.key.kind == objects::Kind::ray_cluster)
    return objects::cluster_pods(
        object.spec.as<objects::RayClusterSpec>(), queue,
        {.context_bytes = sizes.context_bytes, .largest_device_bytes = sizes.largest_bytes});
  engines::EngineRequest request = objects::engine_request(spec, std::move(queue));
  request.context_bytes = sizes.context_bytes;
  request.largest_device_bytes = sizes.largest_bytes;
  return engines::engine_pods(request);
}

}  // namespace

Result<engines::EnginePods, api::FieldErrors> pods_of_submitted(const Object& object,
                                                                const std::string& queue,
                                                                const objects::QueueSpec& of_queue,
                                                                const DeviceSizes& sizes) {
  const objects::JobSpec spec = job_spec(object);
  auto pods = pods_in_queue(object, spec, objects::queue_terms(queue, of_queue), sizes);
  api::FieldErrors errors = pods ? api::FieldErrors{} : pods.error();
  if (std::ranges::find(of_queue.compute_groups, spec.compute_group) == of_queue.compute_groups.end())
    errors.push_back(
        {.field = "spec.computeGroup",
         .value = spec.compute_group.substr(0, 80),
         .message =
             fmt::format("spec.computeGroup: queue {} has no compute group '{}'; its compute groups are {}",
                         queue, spec.compute_group.substr(0, 80), fmt::join(of_queue.compute_groups, ", "))});
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  pods->need.deadline = int64_t{spec.deadline_seconds} * workload::second_ns;
  const auto allowed = workload::check(objects::workload_queue(queue, of_queue, 0), pods->need, 0);
  if (!allowed)
    return tl::unexpected(
        api::FieldErrors{{.field = "spec.queue", .value = queue, .message = allowed.error().message}});
  return pods;
}

Result<JobForm, std::string> job_form(const Object& job, const Object& queue, const DeviceSizes& sizes) {
  JobForm out{.spec = job_spec(job), .pool = "", .pods = {}, .job = {}};
  objects::QueueSpec of_queue = queue_spec(queue);
  out.pool = of_queue.pool;
  // A request that was valid when it was submitted stays valid.
  of_queue.strict = false;
  of_queue.max_slices = 0;
  of_queue.compute_groups = {out.spec.compute_group};
  const bool has_whole_devices = of_queue.gpu == QueueGpu::gpu;
  auto pods = pods_of_submitted(job, queue.key.name, of_queue, has_whole_devices ? sizes : DeviceSizes{});
  if (!pods) return tl::unexpected(pods.error().front().message);
  out.pods = std::move(*pods);
  out.job = {.name = job.key.name,
             .pods = job.key.kind == objects::Kind::ray_cluster
                         ? cluster_pods(out.pods.need, workload::group_counts(out.pods.need))
                         : pod_specs(out.pods),
             .retries = out.spec.retries,
             .deadline = out.pods.need.deadline,
             .ttl = int64_t{out.spec.ttl_seconds_after_finished} * workload::second_ns,
             .stays = job.key.kind == objects::Kind::ray_cluster};
  return out;
}

std::vector<workload::PodSpec> cluster_pods(const workload::JobNeed& need,
                                            const std::vector<uint32_t>& workers) {
  std::vector<workload::PodSpec> out{{.id = {PodRole::head, 0}, .needs_slice = false}};
  for (uint32_t group = 0; group < workers.size(); ++group)
    for (uint32_t place = 0; place < workers[group]; ++place)
      out.push_back({.id = {PodRole::worker, workload::slice_index(need, group, place)}});
  std::ranges::sort(out, {}, &workload::PodSpec::id);
  return out;
}

std::string pod_name(const std::string& job, workload::PodId id) {
  return fmt::format("{}-{}-{}", job, carve::text(id.role), id.index);
}

namespace {

// The amounts of one slice: "1000 MiB, 30%", "2 whole devices" or "8GiB:30%,4GiB:10%".
std::string slice_text(const Amounts& amounts) {
  if (amounts.exclusive)
    return fmt::format("{} whole device{}", amounts.devices, amounts.devices == 1 ? "" : "s");
  if (!amounts.parts.empty()) return carve::text(amounts.parts);
  return fmt::format("{}, {}", std::string_view(carve::text(Bytes{amounts.memory_bytes.value_or(0)})),
                     std::string_view(carve::text(Share{amounts.share_bp.value_or(0)})));
}

}  // namespace

std::string slice_text(const workload::JobNeed& need) {
  if (need.groups.size() == 1) return slice_text(need.groups.front().amounts);
  std::string all;
  for (const workload::SliceGroup& group : need.groups)
    all += fmt::format("{}{} of {}", all.empty() ? "" : "; ", group.slices, slice_text(group.amounts));
  return all;
}

}  // namespace carve::controller
