// The Linux capabilities of this thread (capabilities(7)); threads that it starts later inherit them.
#pragma once

#include <initializer_list>

#include "core/failure.h"

namespace carve::os {

// Returns whether the capability is in effect; `capability` is one of linux/capability.h.
bool has_capability(int capability);

// Drops all capabilities except these permanently. An executed program does not get the others either, unless
// this process is root.
Outcome<void> keep_capabilities(std::initializer_list<int> kept);

}  // namespace carve::os
