// `carve wait --for=... KIND/NAME...`: waits until objects of the controller have reached a state.
#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"

namespace carve::cli {

struct ObjectWaitOptions {
  std::vector<std::string> words;  // "service/a"..., or "service" "a"...
  std::string name_space = "default";
  std::string goal;             // A valid --for. Empty if it is missing.
  std::string timeout = "30s";  // A valid time span.
};

// Prints each object that has reached the state. Exits with status 1 if one has not within the timeout, or does
// not exist.
void wait_for_objects(Context&, const ObjectWaitOptions&);

}  // namespace carve::cli
