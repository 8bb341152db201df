// The guest library's clock and its sleeps. They have their own source file, so that unit tests can replace
// them (testing/clock_fake.h). So measurements in tests do not depend on the machine's load.
#pragma once

#include <stdint.h>

#include <atomic>

namespace carve::guest {

uint64_t monotonic_ns();  // CLOCK_MONOTONIC, which all processes of a machine share.

void sleep_for(uint64_t ns);
// Sleeps until the low half of the word differs from that of `value`, or `ns` have passed.
void sleep_on(const std::atomic<uint64_t>& word, uint64_t value, uint64_t ns);

}  // namespace carve::guest
