// The thread that keeps services as they are desired: it runs the service loop whenever an object changes,
// and in between at an interval that grows from 10 ms to 1 s while nothing changes.
#pragma once

#include <thread>

#include "controller/runtime/machine.h"
#include "controller/services/service_loop.h"
#include "os/mutex.h"

namespace carve::controller {

class ServiceThread {
 public:
  ServiceThread(ObjectRegistry& objects, WorkloadRecords records, Machine& machine);
  ~ServiceThread();  // Ends after the turn that is under way; programs run on.
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

 private:
  void run() EXCLUDES(mutex_);
  // Waits until an object changes, the interval is over or the thread is to end. Returns false at the end.
  bool wait(int64_t interval_ns) EXCLUDES(mutex_);

  Machine& machine_;
  ServiceLoop loop_;
  os::Mutex mutex_;
  os::ConditionVariable woken_;
  bool has_changed_ GUARDED_BY(mutex_) = false;
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace carve::controller
