// Computes the status of a Job object. A pure function.
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
  std::string problem;  // The failed step; empty if none failed.
  std::string why_requeued;
  std::string why_not_started;
};

// `before` is the stored status, from which warnings and derived parameters are kept.
objects::JobStatus job_status(const JobStatusInput&, objects::JobStatus before);

}  // namespace carve::controller
