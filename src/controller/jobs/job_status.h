// The status of a Job object. Pure.
#pragma once

#include <map>

#include "controller/objects/job_form.h"
#include "controller/services/effects.h"
#include "controller/store/stored_records.h"

namespace carve::controller {

struct JobStatusInput {
  const Object& object;
  const JobForm& form;
  const JobRecord& record;
  const workload::Job& job;
  const workload::JobObserved& observed;
  const std::map<workload::PodId, PodRecord>& pods;
  const std::map<workload::PodId, ObservedProgram>& programs;
  std::string problem;  // A step that failed; empty if none did.
  std::string why_requeued;
  std::string why_not_started;
};

// `before` is the stored status, whose warnings and derived parameters are kept.
objects::JobStatus job_status(const JobStatusInput&, objects::JobStatus before);

}  // namespace carve::controller
