// What a pod with a slice may not have in a cluster: each would take a container out of its slice, or past
// the scheduler that placed it.
#pragma once

#include "fronts/error_list.h"
#include "fronts/pod/pod_settings.h"
#include "wire/api/json_value.h"

namespace carve::fronts {

inline constexpr const char* default_scheduler = "default-scheduler";  // The cluster's own.

// Adds an error for each guard that the pod's spec does not pass.
void check_guards(const api::Json& pod_spec, const PodSettings&, ErrorList&);

// Returns the text of a member, or an empty text if there is none or it is something else.
std::string text_member(const api::Json& object, const char* key);

}  // namespace carve::fronts
