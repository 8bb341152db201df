#include "controller/kubernetes/batch_jobs.h"

#include "controller/kubernetes/kueue_objects.h"
#include "controller/kubernetes/made_kinds.h"
#include "core/invariant.h"
#include "render/job_manifests.h"

namespace carve::controller {

using api::Json;

bool is_run_by_cluster(const objects::JobSpec& spec) { return spec.engine == JobEngine::custom; }

std::string programs_mark(const objects::JobSpec& spec) {
  objects::JobSpec fixed = spec;
  fixed.cancelled = false;
  fixed.ttl_seconds_after_finished = objects::JobSpec().ttl_seconds_after_finished;
  return digest_of(api::write(fixed));
}

Result<OwnedObjects, api::FieldErrors> job_objects(const Object& job, const Object& queue) {
  const objects::JobSpec spec = job_spec(job);
  invariant(is_run_by_cluster(spec), "the other engines have no Job");
  if (spec.run.image.empty())
    return tl::unexpected(api::FieldErrors{
        {.field = "spec.run.image",
         .value = "",
         .message = "spec.run.image: is required, because Kubernetes runs only containers"}});
  auto pods = pods_of_submitted(job, queue.key.name, queue_spec(queue), {});
  if (!pods) return tl::unexpected(std::move(pods.error()));
  Json made = render::indexed_job(metadata_of(job), spec, *pods);
  made["spec"].erase("ttlSecondsAfterFinished");
  made["spec"]["suspend"] = true;
  Json& metadata = made["metadata"];
  metadata["namespace"] = job.key.namespace_;
  metadata["labels"][managed_by_label] = managed_by_carve;
  metadata["labels"][queue_name_label] = queue.key.name;
  if (spec.priority != 0) metadata["labels"][priority_class_label] = priority_class_name(spec.priority);
  metadata["annotations"][applied_annotation] = programs_mark(spec);
  metadata["ownerReferences"] = Json::array();
  metadata["ownerReferences"].push_back(owner_reference(job, /*is_controller=*/true));
  mark_pods(made["spec"]["template"], job);
  OwnedObjects out{.objects = {}, .warnings = std::move(pods->warnings)};
  out.objects.push_back(std::move(made));
  return out;
}

}  // namespace carve::controller
