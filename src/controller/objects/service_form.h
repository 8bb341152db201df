// The service that an object runs as: a Service is one, an Application is translated.
#pragma once

#include "controller/objects/object_record.h"
#include "wire/objects/service_object.h"

namespace carve::controller {

// Returns the spec of the service that the workload runs as. The object was checked when it was stored, so
// nothing of it is refused here.
objects::ServiceSpec service_form(const Object&);

}  // namespace carve::controller
