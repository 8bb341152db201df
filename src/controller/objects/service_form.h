// The service that an object runs as: a Service is one already, an Application is translated.
#pragma once

#include "controller/objects/object_record.h"
#include "objects/application.h"
#include "objects/service_object.h"
#include "wire/api/slice.h"
#include "workload/host_fit.h"

namespace carve::controller {

// Returns the spec of the service that the workload runs as. The object was checked when it was stored, so
// this never fails.
objects::ServiceSpec service_form(const Object&);

// Changes the spec of a service or an application: `edit` takes either, by reference.
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

// Returns the part of the spec that a revision fixes, as JSON: everything except the number of replicas,
// whether it is stopped, and how it is updated and scaled.
std::string revision_spec(const objects::ServiceSpec&);

// The nodes on which the replicas may run.
struct NodeChoice {
  std::string pool = {};  // Empty for any.
  std::vector<objects::Toleration> tolerations = {};
};
NodeChoice node_choice(const objects::ServiceSpec&);

// Returns the request of each replica to a node, without its name and owner; no value if it needs no GPU. The
// spec was checked.
std::optional<Amounts> slice_terms(const objects::ServiceSpec&);

// Returns the cores and the memory that each replica requests of its node's machine. The spec was checked.
workload::HostResources host_request(const objects::ServiceSpec&);

}  // namespace carve::controller
