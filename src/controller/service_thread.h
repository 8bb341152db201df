// The thread that keeps services and jobs as they are desired: it runs their loops whenever an object
// changes, and in between at an interval that grows from 10 ms to 1 s while nothing changes; to 100 ms while
// a job runs, because the end of a program is seen in a turn.
#pragma once

#include <functional>
#include <thread>

#include "controller/jobs/job_loop.h"
#include "controller/runtime/machine.h"
#include "controller/services/orphans.h"
#include "controller/services/service_loop.h"
#include "os/mutex.h"

namespace carve::controller {

class ServiceThread {
 public:
  using MakeJobLoop = std::function<JobLoop(Effects&)>;
  // `orphan_grace`: how long programs without a record run on.
  ServiceThread(ObjectRegistry& objects, WorkloadRecords records, const MakeJobLoop&, Machine& machine,
                OrphanEvents&, int64_t orphan_grace_ns);
  ~ServiceThread();  // Ends after the turn that is under way; programs run on.
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

 private:
  void run() EXCLUDES(mutex_);
  // Waits until an object changes, the interval is over or the thread is to end. Returns false at the end.
  bool wait(int64_t interval_ns) EXCLUDES(mutex_);

  Machine& machine_;
  ServiceLoop services_;
  JobLoop jobs_;
  Orphans orphans_;
  int64_t now_ns_ = 0;  // Of the turn.
  os::Mutex mutex_;
  os::ConditionVariable woken_;
  bool has_changed_ GUARDED_BY(mutex_) = false;
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace carve::controller
