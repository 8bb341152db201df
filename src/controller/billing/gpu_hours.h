// GPU-hours by account and queue since the controller started, for metrics: the sums of the invoice lines from
// then on (bill/invoice.h). They never decrease. A record that is copied late, because its node did not
// respond, is counted when it arrives.
//
// A series lives as long as the controller, so the number of pairs is bounded: the first `max_pairs` pairs have
// their own sum, and all later ones share the pair `rest`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/billing/usage_store.h"
#include "os/mutex.h"

namespace carve::controller {

class GpuHours {
 public:
  static constexpr size_t max_pairs = 200;
  static constexpr const char* rest = "(other)";

  struct Sum {
    std::string account;
    std::string queue;       // Empty if none.
    __int128 gpu_hours = 0;  // Millionths.
  };

  // `started_ns` is the start of the controller in UTC.
  explicit GpuHours(int64_t started_ns) : started_ns_(started_ns) {}

  // Counts records that were copied: new ones, open ones and those that have ended since the last copy. `now`
  // is the time of the copy. Called by one thread.
  void count(const std::vector<UsageRow>& rows, const bill::Tariffs&, const ledger::Stamp& now)
      EXCLUDES(mutex_);
  std::vector<Sum> sums() const EXCLUDES(mutex_);

 private:
  using Record = std::tuple<std::string, uint32_t, uint64_t>;  // Node, ledger, id.

  void add(const std::string& account, const std::string& queue, __int128 hours) EXCLUDES(mutex_);

  const int64_t started_ns_;
  std::map<Record, __int128> open_;  // GPU-hours of open records that were counted. Only for the thread.
  mutable os::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, __int128> sums_ GUARDED_BY(mutex_);
};

}  // namespace carve::controller
