#include "objects/rules/cluster_check.h"

#include <algorithm>

#include "objects/error_list.h"
#include "objects/rules/job_check.h"

namespace carve::objects {
namespace {

constexpr const char* ray_amount_key = "serverless.ray.worker.gpu.amount";

void check_worker_groups(const std::vector<objects::RayWorkers>& workers, ErrorList& errors) {
  if (workers.empty() || workers.size() > max_worker_groups)
    return errors.add("spec.workers", "", "{} groups are given; use 1 to {}", workers.size(),
                      max_worker_groups);
  uint64_t replicas = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    replicas += workers[i].replicas;
    if (workers[i].replicas == 0)
      errors.add(fmt::format("spec.workers[{}].replicas", i), "0", "must be at least 1");
  }
  if (replicas > workload::max_job_slices)
    errors.add("spec.workers", "", "{} replicas in total are too many; use at most {}", replicas,
               workload::max_job_slices);
}

// Returns the group as the keys of a Ray job. `common` contains the cluster's keys, which must be valid.
engines::Parameters keys_of(const objects::RayWorkers& workers, const engines::Parameters& common) {
  engines::Parameters out = common;
  out[ray_amount_key] = "1";
  if (workers.mgpu_core != 0) out[std::string(engines::core_key)] = fmt::format("{}", workers.mgpu_core);
  if (workers.mgpu_memory != 0)
    out[std::string(engines::memory_key)] = fmt::format("{}", workers.mgpu_memory);
  return out;
}

std::string renamed(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Returns the error with the job's keys replaced by the document's fields.
api::FieldError renamed(api::FieldError error, size_t group) {
  const std::string place = fmt::format("spec.workers[{}]", group);
  for (std::string* text : {&error.field, &error.message}) {
    *text = renamed(std::move(*text), "spec.parameters.", "");
    *text = renamed(std::move(*text), std::string(engines::core_key), place + ".mgpuCore");
    *text = renamed(std::move(*text), std::string(engines::memory_key), place + ".mgpuMemory");
  }
  return error;
}

}  // namespace

Result<objects::RayCluster, api::FieldErrors> read_ray_cluster(std::string_view json) {
  auto [cluster, wrong] = api::read_partly<objects::RayCluster>(json, api::Reading::strict);
  const objects::RayClusterSpec& spec = cluster.spec;
  ErrorList errors;
  if (cluster.metadata.name.empty()) errors.add("metadata.name", "", "is required");
  for (api::FieldError& error : check_programs(cluster.metadata, job_of_cluster(spec))) {
    for (std::string* text : {&error.field, &error.message})
      *text = renamed(std::move(*text), "spec.run.", "spec.");
    errors.add_all({error});
  }
  check_worker_groups(spec.workers, errors);
  if (spec.engine_home.empty())
    errors.add("spec.engineHome", "",
               "is required; set it to the directory of the program ray, such as /opt/ray/bin");
  errors.add_all(engines::check_carve_keys(JobEngine::ray, spec.parameters));
  for (const auto& [key, value] : spec.parameters)
    if (!key.starts_with("carve."))
      errors.add("spec.parameters", key, "{} has no effect on a cluster; use one of {}, {} and {}",
                 typed(key), engines::ray_cpus_key, engines::ray_memory_key, engines::ray_store_key);
  if (api::FieldErrors all = api::joined(std::move(wrong), errors.all()); !all.empty())
    return tl::unexpected(std::move(all));
  return std::move(cluster);
}

Result<engines::EnginePods, api::FieldErrors> cluster_pods(const objects::RayClusterSpec& spec,
                                                           const engines::QueueTerms& queue,
                                                           const PoolDevices& devices) {
  engines::EnginePods out{
      .groups = {{.role = PodRole::head, .count = 1, .has_gpu = false}}, .need = {}, .warnings = {}};
  ErrorList errors;
  uint32_t replicas = 0;
  for (size_t i = 0; i < spec.workers.size(); ++i) {
    const objects::RayWorkers& workers = spec.workers[i];
    const auto pods = engines::engine_pods({.engine = JobEngine::ray,
                                            .parameters = keys_of(workers, spec.parameters),
                                            .queue = queue,
                                            .workers = workers.replicas,
                                            .context_bytes = devices.context_bytes,
                                            .largest_device_bytes = devices.largest_device_bytes});
    if (!pods) {
      for (const api::FieldError& error : pods.error()) errors.add_all({renamed(error, i)});
      continue;
    }
    out.need.device_memory = pods->need.device_memory;
    std::ranges::move(pods->need.groups, std::back_inserter(out.need.groups));
    replicas += workers.replicas;
    out.tasks_at_once = pods->tasks_at_once;
    for (const std::string& warning : pods->warnings)
      out.warnings.push_back(renamed({.field = "", .value = "", .message = warning}, i).message);
  }
  if (!errors.empty()) return tl::unexpected(errors.all());
  out.groups.push_back({.role = PodRole::worker, .count = replicas, .has_gpu = true});
  return out;
}

objects::JobSpec job_of_cluster(const objects::RayClusterSpec& spec) {
  uint32_t workers = 0;
  for (const objects::RayWorkers& group : spec.workers) workers += group.replicas;
  std::map<std::string, std::string> env = spec.env;
  env.try_emplace("PATH",
                  spec.engine_home + ":/usr/local/bin:/usr/bin:/bin");  // PATH of submitted programs.
  return {.queue = spec.queue,
          .compute_group = spec.compute_group,
          .engine = JobEngine::ray,
          .parameters = spec.parameters,
          .run = {.env = std::move(env)},
          .engine_home = spec.engine_home,
          .workers = workers,
          .priority = spec.priority};
}

}  // namespace carve::objects
