// A mutex for the threads of one process, with clang's annotations (base/thread_annotations.h), so that the
// compiler rejects the use of a member without its lock. The standard library's mutex has no annotations.
//
// A condition is tested in a loop around wait(), not in a lambda, because the analysis does not know that a
// lambda's caller holds the lock: `while (!ready_) changed_.wait(mutex_);`
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.h"

namespace carve::os {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// Holds the mutex while the object exists.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class ConditionVariable {
 public:
  // Releases the mutex, waits for a notification, and takes the mutex again. It may also return without a
  // notification.
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    changed_.wait(held);
    held.release();
  }
  // Does the same, but waits at most until the deadline. Returns false if the deadline has passed.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline) REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = changed_.wait_until(held, deadline);
    held.release();
    return status == std::cv_status::no_timeout;
  }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace carve::os
