// How long jobs wait in their queues: a histogram of the waits until admission since the controller started, and
// the job that has waited longest. The job reconciler writes it and the API's thread reads it. A deleted queue
// is forgotten, so the number of entries is bounded by max_queue_objects.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "os/mutex.h"
#include "wire/api/exposition.h"

namespace carve::controller {

class QueueWaits {
 public:
  static constexpr std::array<uint64_t, 12> bounds_ms = {100,       500,        1'000,      5'000,
                                                         15'000,    60'000,     300'000,    900'000,
                                                         3'600'000, 14'400'000, 43'200'000, 86'400'000};

  struct Queue {
    api::Histogram waits{bounds_ms};
    int64_t oldest_ns = 0;  // UTC time since which its first job has waited; 0 if none waits.
  };

  // Counts the wait of a job that was admitted.
  void admitted(const std::string& queue, int64_t waited_ns) EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    queues_[queue].waits.add(static_cast<uint64_t>(std::max<int64_t>(0, waited_ns)) / 1'000'000);
  }
  // Sets the oldest wait of each queue that exists. The other queues are forgotten.
  void replace(const std::map<std::string, int64_t>& oldest_ns) EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    std::erase_if(queues_, [&](const auto& known) { return !oldest_ns.contains(known.first); });
    for (const auto& [queue, since] : oldest_ns) queues_[queue].oldest_ns = since;
  }
  std::map<std::string, Queue> queues() const EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    return queues_;
  }

 private:
  mutable os::Mutex mutex_;
  std::map<std::string, Queue> queues_ GUARDED_BY(mutex_);
};

}  // namespace carve::controller
