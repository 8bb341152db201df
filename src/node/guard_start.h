// Puts the kernel guard in force when the agent starts, if the options, the devices and the kernel allow it.
#pragma once

#include <memory>

#include "node/guard/slice_guard.h"
#include "node/steps.h"

namespace carve::node {

// Returns the guard, or one without a kernel guard and with the reason. Fails only with --guard kernel.
Outcome<std::unique_ptr<SliceGuard>> start_guard(const Options&, const Machine&);

}  // namespace carve::node
