// Documents of the API, version 1: the time limit and the supervisor of a slice.
#pragma once

#include <cstdint>

#include "wire/api/json.h"

namespace carve::api {

// POST and GET /v1/slices/NAME/time-limit. At the limit, the slice's processes get SIGTERM; after the grace
// time, they are killed and the slice ends.
struct TimeLimit {
  uint64_t seconds = 0;         // From the request on; at most 10 years. 0 means no limit, and removes one.
  uint64_t grace_seconds = 30;  // At most one day.
  uint64_t left_seconds = 0;    // In a response: until SIGTERM; 0 if it was sent.
};

// POST /v1/slices/NAME/supervise: the caller becomes the slice's supervisor.
struct Supervision {
  // Whether the supervisor may start its program again: the slice then ends with the supervisor, not with its
  // last process. The same supervisor may repeat the request before each start.
  bool keeps = false;
};

inline constexpr uint64_t max_time_limit_seconds = 3650ULL * 24 * 3600;
inline constexpr uint64_t max_grace_seconds = 24 * 3600;

}  // namespace carve::api
