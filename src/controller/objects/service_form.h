// The service that an object runs as: a Service is one, an Application is translated.
#pragma once

#include "controller/objects/object_record.h"
#include "wire/api/slice.h"
#include "wire/objects/service_object.h"
#include "workload/host_fit.h"

namespace carve::controller {

// Returns the spec of the service that the workload runs as. The object was checked when it was stored, so
// nothing of it is refused here.
objects::ServiceSpec service_form(const Object&);

// Returns the part of the spec that a revision fixes, as JSON: all but the number of replicas, whether it is
// stopped, and how it is updated and scaled.
std::string revision_spec(const objects::ServiceSpec&);

// On which nodes the replicas may run.
struct NodeChoice {
  std::string pool = {};  // Empty: any.
  std::vector<objects::Toleration> tolerations = {};
};
NodeChoice node_choice(const objects::ServiceSpec&);

// Returns what each replica asks of a node, without its name and owner; no value if it needs no GPU. The spec
// was checked.
std::optional<api::SliceRequest> slice_terms(const objects::ServiceSpec&);

// Returns the cores and the memory that each replica requests of its node's machine. The spec was checked.
workload::HostResources host_request(const objects::ServiceSpec&);

}  // namespace carve::controller
