// Settings that a pod with a slice must not have in a cluster, because they would give a container access
// beyond its slice or bypass the scheduler that placed it.
#pragma once

#include "dialects/pod/pod_settings.h"
#include "objects/error_list.h"
#include "wire/api/json_value.h"

namespace carve::dialects {

inline constexpr const char* default_scheduler = "default-scheduler";  // The cluster's own scheduler.

// Adds an error for each guard that the pod's spec violates.
void check_guards(const api::Json& pod_spec, const PodSettings&, objects::ErrorList&);

}  // namespace carve::dialects
