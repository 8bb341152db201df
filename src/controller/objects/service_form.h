// The service that runs for an object: a Service itself, or the translation of an Application.
#pragma once

#include "controller/objects/object_record.h"
#include "objects/application.h"
#include "objects/service_object.h"
#include "wire/api/slice.h"
#include "workload/host_fit.h"

namespace carve::controller {

// Returns the spec of the service that runs for the workload. Never fails, because the object was checked
// when it was stored.
objects::ServiceSpec service_form(const Object&);

// Changes the spec of a service or an application with `edit`, which accepts a reference to either.
template <class Edit>
void edit_workload(Object& object, Edit edit) {
  const auto change = [&](auto spec) {
    edit(spec);
    object.spec.set(std::move(spec));
  };
  if (object.key.kind == objects::Kind::application)
    change(object.spec.as<objects::ApplicationSpec>());
  else
    change(object.spec.as<objects::ServiceSpec>());
}

// Returns the part of the spec that belongs to a revision, as JSON: everything except the number of replicas,
// whether the service is stopped, and how it is updated and scaled.
std::string revision_spec(const objects::ServiceSpec&);

// The nodes on which the replicas may run.
struct NodeChoice {
  std::string pool = {};  // Empty for any pool.
  std::vector<objects::Toleration> tolerations = {};
};
NodeChoice node_choice(const objects::ServiceSpec&);

// Returns the request that is sent to a node for each replica, without name and owner; no value if the
// replica needs no GPU. The spec must be valid.
std::optional<Amounts> slice_terms(const objects::ServiceSpec&);

// Returns the cores and the memory that each replica requests on its node. The spec must be valid.
workload::HostResources host_request(const objects::ServiceSpec&);

}  // namespace carve::controller
