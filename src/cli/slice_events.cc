#include "cli/slice_events.h"

namespace carve::cli {

std::vector<api::Event> events_of_slice(const std::vector<api::Event>& events, std::string_view name,
                                        bool all_lives) {
  std::vector<api::Event> out;
  for (const api::Event& event : events)
    if (event.slice == name) out.push_back(event);
  if (all_lives || out.empty()) return out;
  const uint64_t last = out.back().slice_id;
  std::erase_if(out, [&](const api::Event& event) { return event.slice_id != last; });
  return out;
}

}  // namespace carve::cli
