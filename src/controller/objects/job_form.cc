#include "controller/objects/job_form.h"

#include <algorithm>

#include "core/invariant.h"
#include "fronts/engines/cluster_check.h"
#include "fronts/engines/job_check.h"
#include "fronts/engines/queue_check.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

template <class T>
T stored(const Object& object) {
  auto spec = api::read<T>(object.spec, api::Reading::lenient);
  invariant(spec.has_value(), "a stored spec was written by this program");
  return std::move(*spec);
}

std::vector<workload::PodSpec> pod_specs(const fronts::EnginePods& pods) {
  std::vector<workload::PodSpec> out;
  for (const fronts::PodGroup& group : pods.groups)
    for (uint32_t index = 0; index < group.count; ++index)
      out.push_back({.id = {group.role, index}, .needs_slice = group.has_gpu});
  return out;
}

}  // namespace

objects::QueueSpec queue_spec(const Object& object) { return stored<objects::QueueSpec>(object); }
objects::JobSpec job_spec(const Object& object) {
  if (object.key.kind == objects::Kind::ray_cluster)
    return fronts::job_of_cluster(stored<objects::RayClusterSpec>(object));
  return stored<objects::JobSpec>(object);
}

namespace {

Result<fronts::EnginePods, api::FieldErrors> pods_in_queue(const Object& object, const objects::JobSpec& spec,
                                                           fronts::QueueTerms queue,
                                                           const DeviceSizes& sizes) {
  if (object.key.kind == objects::Kind::ray_cluster)
    return fronts::cluster_pods(
        stored<objects::RayClusterSpec>(object), queue,
        {.context_bytes = sizes.context_bytes, .largest_device_bytes = sizes.largest_bytes});
  fronts::EngineRequest request = fronts::engine_request(spec, std::move(queue));
  request.context_bytes = sizes.context_bytes;
  request.largest_device_bytes = sizes.largest_bytes;
  return fronts::engine_pods(request);
}

}  // namespace

Result<fronts::EnginePods, api::FieldErrors> pods_of_submitted(const Object& object, const std::string& queue,
                                                               const objects::QueueSpec& of_queue,
                                                               const DeviceSizes& sizes) {
  const objects::JobSpec spec = job_spec(object);
  auto pods = pods_in_queue(object, spec, fronts::queue_terms(queue, of_queue), sizes);
  api::FieldErrors errors = pods ? api::FieldErrors{} : pods.error();
  if (std::ranges::find(of_queue.compute_groups, spec.compute_group) == of_queue.compute_groups.end())
    errors.push_back({.field = "spec.computeGroup",
                      .value = spec.compute_group.substr(0, 80),
                      .sentence = fmt::format(
                          "spec.computeGroup: queue {} has no compute group '{}'; there are {}", queue,
                          spec.compute_group.substr(0, 80), fmt::join(of_queue.compute_groups, ", "))});
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  pods->need.deadline = int64_t{spec.deadline_seconds} * workload::second_ns;
  const auto allowed = workload::check(fronts::workload_queue(queue, of_queue, 0), pods->need, 0);
  if (!allowed)
    return tl::unexpected(
        api::FieldErrors{{.field = "spec.queue", .value = queue, .sentence = allowed.error().sentence}});
  return pods;
}

Result<JobForm, std::string> job_form(const Object& job, const Object& queue, const DeviceSizes& sizes) {
  JobForm out{.spec = job_spec(job), .pool = "", .pods = {}, .job = {}};
  objects::QueueSpec of_queue = queue_spec(queue);
  out.pool = of_queue.pool;
  // What was valid at the submission stays so.
  of_queue.strict = false;
  of_queue.max_slices = 0;
  of_queue.compute_groups = {out.spec.compute_group};
  const bool has_whole_devices = of_queue.gpu == carve::text(workload::QueueGpu::gpu);
  auto pods = pods_of_submitted(job, queue.key.name, of_queue, has_whole_devices ? sizes : DeviceSizes{});
  if (!pods) return tl::unexpected(pods.error().front().sentence);
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
  std::vector<workload::PodSpec> out{{.id = {workload::PodRole::head, 0}, .needs_slice = false}};
  for (uint32_t group = 0; group < workers.size(); ++group)
    for (uint32_t place = 0; place < workers[group]; ++place)
      out.push_back({.id = {workload::PodRole::worker, workload::slice_index(need, group, place)}});
  std::ranges::sort(out, {}, &workload::PodSpec::id);
  return out;
}

std::string pod_name(const std::string& job, workload::PodId id) {
  return fmt::format("{}-{}-{}", job, carve::text(id.role), id.index);
}

// The vendor's shares are limits, so the policy is fixed-share.
api::SliceRequest slice_terms(const workload::JobNeed& need) {
  api::SliceRequest out{.devices = std::max(need.devices, 1U)};
  if (need.gpu == workload::QueueGpu::gpu) {
    out.exclusive = true;
    return out;
  }
  out.memory_bytes = need.memory.count;
  out.share_bp = need.share.basis_points;
  out.policy = Policy::fixed_share;
  return out;
}

std::string slice_text(const workload::JobNeed& need) {
  if (!need.more.empty()) {
    std::string all;
    for (const workload::JobNeed& part : workload::equal_parts(need))
      all += fmt::format("{}{} of {}", all.empty() ? "" : "; ", part.slices, slice_text(part));
    return all;
  }
  if (need.gpu == workload::QueueGpu::none) return "";
  if (need.gpu == workload::QueueGpu::mgpu)
    return fmt::format("{}, {}", std::string_view(carve::text(need.memory)),
                       std::string_view(carve::text(need.share)));
  const uint32_t devices = std::max(need.devices, 1U);
  return fmt::format("{} whole device{}", devices, devices == 1 ? "" : "s");
}

}  // namespace carve::controller
