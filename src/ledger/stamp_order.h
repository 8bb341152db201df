// The order of two times of one machine.
#pragma once

#include "ledger/usage_record.h"

namespace carve::ledger {

// Returns whether `a` is earlier than `b`: by the monotonic clock within a boot, because UTC can be set back,
// and by UTC otherwise.
inline bool is_earlier(const Stamp& a, const Stamp& b) {
  return a.boot_id == b.boot_id ? a.monotonic_ns < b.monotonic_ns : a.utc_ns < b.utc_ns;
}

}  // namespace carve::ledger
