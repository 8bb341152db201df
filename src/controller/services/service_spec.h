// Translates a service's spec for the service reconciler. All functions are pure functions of the object and
// its records.
#pragma once

#include "controller/objects/object_record.h"
#include "controller/services/effects.h"
#include "controller/store/stored_records.h"

namespace carve::controller {

// Returns whether two revision specs differ only in the slice's memory and share. The running slices are then
// resized in place if their devices have room.
bool differ_in_size_alone(const objects::ServiceSpec&, const objects::ServiceSpec&);

// Returns the desired service that workload::actions() compares.
workload::Service desired_service(const Object&, const objects::ServiceSpec&, const WorkloadRecord&);

// Returns the request for the replica's slice; no value if the service needs no GPU.
std::optional<api::SliceRequest> slice_request(const Object&, const objects::ServiceSpec&,
                                               const ReplicaRecord&);
// Returns the new terms for the slices of a service whose size has changed.
api::SliceChange slice_change(const objects::ServiceSpec&);

// Returns the supervisor's parameters for this attempt of the replica's program.
ProgramStart program_start(const Object&, const objects::ServiceSpec&, const ReplicaRecord&,
                           uint32_t attempt);

}  // namespace carve::controller
