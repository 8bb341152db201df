// `carve delete` for the controller's objects. An object with programs is removed only when its programs and
// slices have ended, so `carve delete` waits for that, as kubectl does.
#pragma once

#include <string>
#include <vector>

#include "cli/services.h"

namespace carve::cli {

struct DeletionWait {
  bool waits = true;
  std::string timeout;  // A valid time span; empty for no limit.
};

// Requests the deletion of each object, then waits until all are gone and prints each one. Ctrl-C and the
// timeout only end the wait: the controller continues the deletion.
void delete_objects(Context& context, const std::vector<ObjectName>& objects, const DeletionWait& wait);

}  // namespace carve::cli
