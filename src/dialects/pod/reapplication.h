// Handles a pod with slices whose manifest is applied again. Admission replaced limits and added a
// toleration, so without this `kubectl apply` would change immutable fields of the pod, and `kubectl diff`
// would never be empty.
#pragma once

#include "wire/api/field_error.h"
#include "wire/api/json_value.h"

namespace carve::dialects {

// Returns the new version of an admitted pod without the parts that its manifest repeats: limits that
// admission replaced, the default scheduler's name, and a list of tolerations without Carve's. Fails if the
// request has other amounts than before, because requests are immutable. Any other pod is returned unchanged.
Result<api::Json, api::FieldErrors> reapplied(const api::Json& pod, const api::Json& before);

}  // namespace carve::dialects
