// The capabilities of Linux that this thread has (capabilities(7)); threads that it starts later have the
// same.
#pragma once

#include <initializer_list>

#include "core/failure.h"

namespace carve::os {

// Returns whether the capability is in effect; `capability` is one of linux/capability.h.
bool has_capability(int capability);

// Gives up all capabilities but these, for ever: a program that is executed gets none of the others either,
// unless this is root.
Outcome<void> keep_capabilities(std::initializer_list<int> kept);

}  // namespace carve::os
