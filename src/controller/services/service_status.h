// The status of a service as its object shows it: a pure function of what the reconciler observed in one
// turn.
#pragma once

#include "controller/objects/object_record.h"
#include "controller/services/effects.h"
#include "controller/store/stored_records.h"
#include "workload/autoscale.h"

namespace carve::controller {

// The last rejected request for a slice, and the reason.
struct SliceRefusal {
  workload::Refusal refusal;
  FailureKind kind = FailureKind::insufficient_capacity;
  std::string message;
};

struct StatusInput {
  const Object& object;
  const objects::ServiceSpec& spec;
  const WorkloadRecord& record;
  const workload::Service& desired;
  const workload::ServiceObserved& observed;
  const std::vector<ReplicaRecord>& replicas;        // In the order of observed.replicas.
  const std::vector<ReplicaRecord>& ended_replicas;  // Replicas of run-once programs, whose logs are kept.
  const std::map<std::string, ObservedProgram>& programs;     // Keyed by slice.
  const std::map<std::string, ObservedSlice>& slices;         // Keyed by name.
  const SliceRefusal* refusal;                                // Null if there is none.
  const std::string& lacks_room;                              // Why no old replica is stopped for a new one.
  const std::string& problem;                                 // Step that failed in this turn; empty if none.
  const std::string& ended;                                   // How run-once programs ended; otherwise empty.
  const std::string& resized;                                 // Result of the last change of size.
  const std::optional<workload::AutoscaleDecision>& scaling;  // Set for a service that scales by its load.
};

inline constexpr std::string_view succeeded_exit = "exit status 0";

// Returns how the program ended, or an empty string if it is still running. If the attempt's memory quota
// rejected an allocation, the text adds that, because most programs exit after a rejected allocation. `slice`
// is null if the program has none.
std::string exit_of(const ObservedProgram&, const ObservedSlice* slice);

// `before` is the status of the previous turn. Its conditions keep their time if they have not changed.
objects::ServiceStatus service_status(const StatusInput&, const objects::ServiceStatus& before,
                                      workload::Ns now);

}  // namespace carve::controller
