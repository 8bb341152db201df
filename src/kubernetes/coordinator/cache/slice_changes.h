// Decides whether the amounts of a running pod's slices can change. From the write of a change until the node
// has carried it out, the larger of the old and the new amount stays reserved, so that no outcome exceeds a
// device.
#pragma once

#include <string>

#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/format/pod_resize.h"

namespace carve::kubernetes::coordinator {

// Chooses the new amounts of the pod's slices and starts the change in the cache (Cache::begin_change()).
// Fails with a message if the devices have no room.
Result<kubernetes::PodSlices, std::string> reserve_change(Cache&, const std::string& uid,
                                                          const kubernetes::PodResize&);

}  // namespace carve::kubernetes::coordinator
