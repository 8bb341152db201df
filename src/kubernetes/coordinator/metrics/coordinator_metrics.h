// The coordinator's measurements as Prometheus metrics. The document is built for each request. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "wire/api/exposition.h"

namespace carve::kubernetes::coordinator {

struct VerbFigures {
  uint64_t answers = 0;
  uint64_t took_ns = 0;  // Sum over all responses.
};

struct CoordinatorFigures {
  std::string version;
  bool is_active = false;                                           // Its scheduler holds the Lease.
  std::map<std::string, VerbFigures> verbs;                         // "filter"
  std::map<std::string, uint64_t> binds;                            // By result: "bound", "refused"
  std::map<std::pair<std::string, std::string>, uint64_t> webhook;  // By dialect and result.
  uint64_t cached_pods = 0;
  uint64_t open_binds = 0;                       // Bindings whose outcome is being checked.
  std::map<std::string, uint64_t> watch_lag_ns;  // By resource: time since its last message.
  std::map<std::string, uint64_t> relists;       // By resource: lists after the first.
  uint64_t overcommitted_devices = 0;
  uint64_t drifting_devices = 0;               // Devices whose slices differ between ledger and cache.
  std::map<std::string, bool> pending;         // By setting.
  std::map<std::string, uint64_t> unreadable;  // Objects that cannot be read, by resource.
};

std::string metrics_text(const CoordinatorFigures&, api::MetricsFormat);

}  // namespace carve::kubernetes::coordinator
