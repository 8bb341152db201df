// Documents of the API, version 1: events. Times are UTC nanoseconds since 1970.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include "wire/api/json.h"

namespace carve::api {

struct Event {
  uint64_t time_ns = 0;
  std::string slice;      // Empty if the event is about the agent.
  uint64_t slice_id = 0;  // Distinguishes slices that had the same name; 0 if unknown.
  std::string text;
  std::string caller;  // The user whose request caused the event: "root", "uid 1000". Empty if none did.
};

// GET /v1/events
struct EventList {
  std::vector<Event> events;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::Event)
CARVE_DECLARE_DOCUMENT(api::EventList)
