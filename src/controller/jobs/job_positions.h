// The position of each waiting job in its queue and why it waits, as of the last decision, and the waits by queue. It changes for
// many jobs at a time, so it is not stored in their status; the API adds it to its responses. The job
// reconciler writes it and the API's thread reads it.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <unordered_map>

#include "controller/jobs/queue_waits.h"
#include "controller/objects/job_form.h"
#include "os/mutex.h"

namespace carve::controller {

class JobPositions {
 public:
  using ByUid = std::unordered_map<std::string, JobPosition>;

  // Frees the previous positions, of which there may be 10,000, after releasing the lock.
  void replace(ByUid positions) EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    positions_.swap(positions);
  }
  // Returns the position of the job with this uid; no value if it is not waiting.
  std::optional<JobPosition> find(const std::string& uid) const EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    const auto found = positions_.find(uid);
    return found == positions_.end() ? std::nullopt : std::optional(found->second);
  }
  // Returns the number of waiting jobs.
  size_t size() const EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    return positions_.size();
  }

  // Records how long the last decision over all queues took.
  void note_decision(int64_t ns) { decision_ns_ = ns; }
  int64_t decision_ns() const { return decision_ns_; }

  QueueWaits waits;

 private:
  std::atomic<int64_t> decision_ns_ = 0;
  mutable os::Mutex mutex_;
  ByUid positions_ GUARDED_BY(mutex_);
};

}  // namespace carve::controller
