// What the library takes for the time. In a source file of its own, so that the unit tests bring another
// (testing/clock_fake.h) and nothing that they measure depends on who has the processors.
#pragma once

#include <stdint.h>

namespace carve::guest {

uint64_t monotonic_ns();  // CLOCK_MONOTONIC, which all processes of a machine share.

}  // namespace carve::guest
