// What a service's spec means for the service loop. Pure functions of the object and its records.
#pragma once

#include "controller/objects/object_record.h"
#include "controller/services/effects.h"
#include "controller/store/stored_records.h"

namespace carve::controller {

// Returns the spec that the controller stored as JSON.
objects::ServiceSpec stored_spec(const std::string& json);

// Returns whether two revision specs differ in the slice's memory and share alone. Such a change is made in
// the running slices if their devices have it.
bool differ_in_size_alone(const objects::ServiceSpec&, const objects::ServiceSpec&);

// Returns what workload::actions() compares.
workload::Service desired_service(const Object&, const objects::ServiceSpec&, const WorkloadRecord&);

// Returns the request for the replica's slice; no value if the service needs no GPU.
std::optional<api::SliceRequest> slice_request(const Object&, const objects::ServiceSpec&,
                                               const ReplicaRecord&);
// Returns the new terms of a slice whose service has another size now.
api::SliceChange slice_change(const objects::ServiceSpec&);

// Returns how a supervisor starts the replica's program for this attempt.
ProgramStart program_start(const Object&, const objects::ServiceSpec&, const ReplicaRecord&,
                           uint32_t attempt);

}  // namespace carve::controller
