// Where each waiting job is in its queue and why it waits, as of the last decision. It changes for many jobs
// at once, so it is no part of their stored status: the API adds it to what it shows. The job loop writes,
// the API's thread reads.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "controller/objects/job_form.h"
#include "os/mutex.h"

namespace carve::controller {

class JobPositions {
 public:
  void replace(std::map<std::string, JobPosition> positions) EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    positions_ = std::move(positions);
  }
  // Returns that of the job with this uid, if it waits.
  std::optional<JobPosition> find(const std::string& uid) const EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    const auto found = positions_.find(uid);
    return found == positions_.end() ? std::nullopt : std::optional(found->second);
  }
  // Returns how many jobs wait.
  size_t size() const EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    return positions_.size();
  }

 private:
  mutable os::Mutex mutex_;
  std::map<std::string, JobPosition> positions_ GUARDED_BY(mutex_);  // By uid.
};

}  // namespace carve::controller
