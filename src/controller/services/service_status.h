// The status of a service as its object shows it: a pure function of what the loop saw in one turn.
#pragma once

#include "controller/objects/object_record.h"
#include "controller/services/effects.h"
#include "controller/store/stored_records.h"
#include "workload/autoscale.h"

namespace carve::controller {

// The last request for a slice that was refused, and why.
struct SliceRefusal {
  workload::Refusal refusal;
  FailureKind kind = FailureKind::insufficient_capacity;
  std::string sentence;
};

struct StatusInput {
  const Object& object;
  const objects::ServiceSpec& spec;
  const WorkloadRecord& record;
  const workload::Service& desired;
  const workload::ServiceObserved& observed;
  const std::vector<ReplicaRecord>& replicas;                 // In the order of observed.replicas.
  const std::map<std::string, ObservedProgram>& programs;     // By slice.
  const std::map<std::string, ObservedSlice>& slices;         // By name.
  const SliceRefusal* refusal;                                // Null: none.
  const std::string& problem;                                 // A step failed in this turn; empty: none did.
  const std::string& resized;                                 // What the last change of size did.
  const std::optional<workload::AutoscaleDecision>& scaling;  // Of a service that scales by its load.
};

// `before`: the status of the last turn, whose conditions keep their time if they have not changed.
objects::ServiceStatus service_status(const StatusInput&, const objects::ServiceStatus& before,
                                      workload::Ns now);

}  // namespace carve::controller
