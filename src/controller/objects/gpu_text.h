// The amounts of a GPU that each replica of a service has, as texts for its status.
#pragma once

#include <string>

#include "core/amounts.h"
#include "objects/service_object.h"

namespace carve::controller {

// Returns the memory of each device: "20 GB (18.6 GiB)". Empty for whole devices.
std::string gpu_memory_text(const objects::Gpu&);
// Returns "4 GiB, 30% of a device on each of 2 devices". `amounts` are those of the GPU.
std::string gpu_text(const objects::Gpu&, const Amounts& amounts, const std::string& memory_text);

}  // namespace carve::controller
