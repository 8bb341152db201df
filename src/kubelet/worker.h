// A thread that does one thing again and again: after an interval, or at once if it is woken. Its calls may
// block.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "os/mutex.h"

namespace carve::kubelet {

class Worker {
 public:
  // `turn` returns how long to wait until the next one, in ns.
  explicit Worker(std::function<int64_t()> turn);
  ~Worker();  // Waits for the turn that is under way.
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void wake() EXCLUDES(mutex_);

 private:
  void run() EXCLUDES(mutex_);
  bool wait(int64_t ns) EXCLUDES(mutex_);  // Returns false at the end.

  const std::function<int64_t()> turn_;
  os::Mutex mutex_;
  os::ConditionVariable changed_;
  bool is_woken_ GUARDED_BY(mutex_) = false;
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace carve::kubelet
