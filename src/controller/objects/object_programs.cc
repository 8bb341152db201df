#include "controller/objects/object_programs.h"

#include "controller/objects/job_form.h"
#include "wire/api/json.h"
#include "wire/objects/job_object.h"

namespace carve::controller {

std::vector<ObjectProgram> programs_of(const Object& object) {
  std::vector<ObjectProgram> out;
  if (is_queued(object.key.kind)) {
    const auto status = api::read<objects::JobStatus>(object.status, api::Reading::lenient);
    if (!status) return out;
    for (const objects::PodStatus& pod : status->pods)
      if (pod.attempt > 0) out.push_back({.name = pod.program, .role = pod.role, .index = pod.index});
    return out;
  }
  const auto status = api::read<objects::ServiceStatus>(object.status, api::Reading::lenient);
  if (!status) return out;
  for (const objects::ReplicaStatus& replica : status->replica_list)
    out.push_back({.name = replica.slice, .role = "replica", .index = replica.index});
  return out;
}

std::vector<std::string_view> roles_of(const Object& object) {
  using workload::PodRole;
  const auto words = [](std::initializer_list<PodRole> roles) {
    std::vector<std::string_view> out;
    for (const PodRole role : roles) out.push_back(carve::text(role));
    return out;
  };
  if (object.key.kind == objects::Kind::ray_cluster) return words({PodRole::head, PodRole::worker});
  if (object.key.kind != objects::Kind::job) return {"replica"};
  switch (carve::parse<fronts::Engine>(job_spec(object).engine).value_or(fronts::Engine::custom)) {
    case fronts::Engine::spark: return words({PodRole::driver, PodRole::executor, PodRole::head});
    case fronts::Engine::ray: return words({PodRole::driver, PodRole::head, PodRole::worker});
    case fronts::Engine::custom: break;
  }
  return words({PodRole::task});
}

bool is_finished_job(const Object& object) {
  if (object.key.kind != objects::Kind::job) return false;
  const auto status = api::read<objects::JobStatus>(object.status, api::Reading::lenient);
  return status && !status->finished_at.empty();
}

}  // namespace carve::controller
