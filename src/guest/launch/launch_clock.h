// The guest library's clock. It has a source file of its own, so that unit tests can replace it
// (testing/clock_fake.h). Then no measurement in a test depends on the machine's load.
#pragma once

#include <stdint.h>

namespace carve::guest {

uint64_t monotonic_ns();  // CLOCK_MONOTONIC, which all processes of a machine share.

}  // namespace carve::guest
