// Rejects requests for GPUs in terms that Carve does not support: resources of other device plugins and
// schedulers, such as volcano.sh/vgpu-memory and nvidia.com/mig-1g.10gb, and annotations of KAI and Run:ai.
// Such a pod would run without a slice.
#pragma once

#include <string>
#include <string_view>

#include "dialects/pod/pod_settings.h"
#include "objects/error_list.h"
#include "wire/api/json_value.h"

namespace carve::dialects {

// Returns whether a resource's name looks like a GPU that Carve does not support.
bool is_unknown_gpu_resource(std::string_view resource);

// Rejects each unknown request of the pod, an object with `metadata` and `spec`. `at` is the prefix of the
// field paths, such as "spec.template.". `has_slice` is true if a container requests a slice in terms that
// Carve supports.
void refuse_unknown_gpu_requests(const api::Json& pod, const std::string& at, bool has_slice,
                                 const PodSettings&, objects::ErrorList&);

}  // namespace carve::dialects
