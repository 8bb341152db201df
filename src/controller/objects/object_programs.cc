#include "controller/objects/object_programs.h"

#include "controller/objects/job_form.h"
#include "objects/job_object.h"

namespace carve::controller {

std::vector<ObjectProgram> programs_of(const Object& object) {
  std::vector<ObjectProgram> out;
  if (is_queued(object.key.kind)) {
    for (const objects::PodStatus& pod : object.status.as<objects::JobStatus>().pods)
      if (pod.attempt > 0) out.push_back({.name = pod.program, .role = text(pod.role), .index = pod.index});
    return out;
  }
  if (!objects::text_of(object.key.kind).is_workload) return out;
  for (const objects::ReplicaStatus& replica : object.status.as<objects::ServiceStatus>().replica_list)
    out.push_back({.name = replica.slice, .role = "replica", .index = replica.index});
  return out;
}

std::vector<std::string_view> roles_of(const Object& object) {
  const auto words = [](std::initializer_list<PodRole> roles) {
    std::vector<std::string_view> out;
    for (const PodRole role : roles) out.push_back(carve::text(role));
    return out;
  };
  if (object.key.kind == objects::Kind::ray_cluster) return words({PodRole::head, PodRole::worker});
  if (object.key.kind != objects::Kind::job) return {"replica"};
  switch (job_spec(object).engine.value().value_or(JobEngine::custom)) {
    case JobEngine::spark: return words({PodRole::driver, PodRole::executor, PodRole::head});
    case JobEngine::ray: return words({PodRole::driver, PodRole::head, PodRole::worker});
    case JobEngine::custom: break;
  }
  return words({PodRole::task});
}

bool is_finished_job(const Object& object) {
  return object.key.kind == objects::Kind::job && !object.status.as<objects::JobStatus>().finished_at.empty();
}

}  // namespace carve::controller
