// The coordinator's figures as metrics for Prometheus. The document is built at each request. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace carve::cluster {

struct VerbFigures {
  uint64_t answers = 0;
  uint64_t took_ns = 0;  // All answers together.
};

struct CoordinatorFigures {
  std::string version;
  bool is_active = false;                    // It is beside the scheduler that holds the Lease.
  std::map<std::string, VerbFigures> verbs;  // "filter"
  std::map<std::string, uint64_t> binds;     // By result: "bound", "refused"
  std::map<std::pair<std::string, std::string>, uint64_t> webhook;  // By dialect and result.
  uint64_t books_pods = 0;
  uint64_t open_binds = 0;                       // Whose end is being found out.
  std::map<std::string, uint64_t> watch_lag_ns;  // By resource: since the API server was heard.
  std::map<std::string, uint64_t> relists;       // By resource: lists after the first.
  uint64_t overcommitted_devices = 0;
  uint64_t drifting_devices = 0;               // Of which a node's ledger differs from the books.
  std::map<std::string, bool> pending;         // By setting.
  std::map<std::string, uint64_t> unreadable;  // Objects that cannot be read, by resource.
};

std::string metrics_text(const CoordinatorFigures&);

}  // namespace carve::cluster
