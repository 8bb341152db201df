// The thread that reconciles services and jobs whenever an object changes or a program ends. While nothing
// changes, it reconciles at an interval that grows from 10 ms to 1 s. While a job runs, it grows only to 100
// ms, because the end of a program that is shorter than a turn does not end the wait.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "controller/jobs/job_reconciler.h"
#include "controller/runtime/machine_effects.h"
#include "controller/services/orphans.h"
#include "controller/services/service_reconciler.h"
#include "os/clock.h"

namespace carve::controller {

// The interval between two turns while no object changes and no program ends.
struct TurnIntervals {
  int64_t min_ns = 10 * os::millisecond;
  int64_t max_ns = os::second;
  int64_t max_busy_ns = 100 * os::millisecond;  // While a job runs.
  // Used for the first turns after a program exits: the supervisor records the exit slightly later.
  int64_t after_end_ns = 10 * os::millisecond;
};

class ServiceThread {
 public:
  using MakeJobReconciler = std::function<JobReconciler(Effects&)>;
  // `orphan_grace` is how long programs without a record keep running.
  ServiceThread(ObjectRegistry& objects, WorkloadRecords records, const MakeJobReconciler&,
                MachineEffects& machine, EventInbox&, int64_t orphan_grace_ns, TurnIntervals intervals = {});
  ~ServiceThread();  // Waits for the turn in progress; programs keep running.
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

 private:
  void run();
  // Reconciles once. Returns whether the next turn should be soon.
  bool turn(int64_t now_ns);

  MachineEffects& machine_;
  const TurnIntervals intervals_;
  ServiceReconciler services_;
  JobReconciler jobs_;
  Orphans orphans_;
  int64_t now_ns_ = 0;  // Time of the turn.
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace carve::controller
