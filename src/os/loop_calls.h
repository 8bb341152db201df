// Calls from other threads into the loop's thread, in their order.
#pragma once

#include <functional>
#include <vector>

#include "os/fd.h"
#include "os/loop.h"
#include "os/mutex.h"

namespace carve::os {

class LoopCalls {
 public:
  explicit LoopCalls(Loop&);
  ~LoopCalls();
  LoopCalls(const LoopCalls&) = delete;
  LoopCalls& operator=(const LoopCalls&) = delete;

  // May be called in any thread. What is posted after the loop has stopped is not called.
  void post(std::function<void()> call) EXCLUDES(mutex_);

 private:
  void run() EXCLUDES(mutex_);

  Loop& loop_;
  const Fd posted_;  // An eventfd.
  Mutex mutex_;
  std::vector<std::function<void()>> calls_ GUARDED_BY(mutex_);
};

}  // namespace carve::os
