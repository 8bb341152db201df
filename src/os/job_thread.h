// A thread for jobs that may block, and whose results belong to a loop: reading a large file, parsing a
// document, listing the kernel's locks. Jobs run one after the other in the order of their posting.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "os/loop_calls.h"
#include "os/mutex.h"

namespace carve::os {

class JobThread {
 public:
  using Done = std::function<void()>;
  // Runs in the thread, and returns what the loop calls afterwards.
  using Job = std::function<Done()>;

  // `max_waiting`: jobs that wait beside the one that runs.
  JobThread(Loop& loop, size_t max_waiting);
  // Waits for the job that runs. Neither the jobs that wait nor finished results are called any more.
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  // Called on the loop. Returns false if too many jobs wait; the job is dropped then.
  bool post(Job) EXCLUDES(mutex_);
  // Called on the loop: no job waits or runs, and every result was called.
  bool is_idle() const { return unfinished_ == 0; }

 private:
  void run() EXCLUDES(mutex_);

  const size_t max_waiting_;
  size_t unfinished_ = 0;  // Jobs whose result the loop has not called. Of the loop.
  LoopCalls calls_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Job> waiting_ GUARDED_BY(mutex_);
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace carve::os
