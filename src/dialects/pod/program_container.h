// Selects the container of a manifest's pod that becomes the program of the service, because one machine runs
// only one container of a pod.
#pragma once

#include <cstddef>
#include <vector>

#include "wire/api/json_value.h"

namespace carve::dialects {

// Returns the indexes of the containers that request a GPU in any dialect, even one that Carve does not
// support. `list` is "containers" or "initContainers". A quantity of 0 is not a request.
std::vector<size_t> containers_with_gpu(const api::Json& pod_spec, const char* list);

// Returns the index of the first container that requests a GPU, or 0 if none does.
size_t program_container(const api::Json& pod_spec);

}  // namespace carve::dialects
