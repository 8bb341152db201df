// The GPU-hours of jobs and Ray clusters: the sums of their invoice lines (bill/invoice.h), computed from the
// copies of the usage records.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/billing/usage_store.h"
#include "os/mutex.h"

namespace carve::controller {

struct BilledJob {
  std::string uid;
  std::string kind;  // "job", "raycluster"
  std::string name_space;
  std::string name;
  int64_t created_ns = 0;  // Earlier records belong to another job of this name.
  bool is_finished = false;
};

struct JobHours {
  std::string gpu_hours;         // With six decimals.
  std::string unpriced_seconds;  // Time of slices on models without units in the tariff.
  bool is_open = false;          // A slice had not ended when its node was last seen.

  friend bool operator==(const JobHours&, const JobHours&) = default;
};

Outcome<JobHours> job_hours(UsageStore&, const bill::Tariffs&, const BilledJob&, const ledger::Stamp& now);

// The hours of all jobs. One thread updates them and others read them.
class KnownJobHours {
 public:
  std::optional<JobHours> find(const std::string& uid) const EXCLUDES(mutex_);

  // Updates the hours that may have changed since the last call. `jobs` has all admitted jobs. The hours of a
  // finished job are final once an update that began after the job's end finds its slices ended.
  Outcome<void> update(UsageStore&, const bill::Tariffs&, const std::vector<BilledJob>& jobs,
                       const ledger::Stamp& now) EXCLUDES(mutex_);
  // Makes the next update compute all hours, because the tariffs have changed.
  void forget_final() { final_.clear(); }

 private:
  mutable os::Mutex mutex_;
  std::map<std::string, JobHours> hours_ GUARDED_BY(mutex_);  // Keyed by uid.
  std::set<std::string> seen_finished_, final_;               // Only for the updating thread.
};

}  // namespace carve::controller
