#include "controller/service_thread.h"

#include <algorithm>

#include "os/capabilities.h"
#include "os/clock.h"

namespace carve::controller {

ServiceThread::ServiceThread(ObjectRegistry& objects, WorkloadRecords records,
                             const MakeJobReconciler& make_job_reconciler, MachineEffects& machine,
                             EventInbox& events, int64_t orphan_grace_ns, TurnIntervals intervals)
    : machine_(machine),
      intervals_(intervals),
      services_(objects, std::move(records), machine),
      jobs_(make_job_reconciler(machine)),
      orphans_(objects, machine, events,
               {.has_record =
                    [this](const auto& name) { return services_.has_record(name) || jobs_.has_record(name); },
                .adopt =
                    [this](const auto& name, const auto& owner) {
                      return services_.adopt(name, owner, now_ns_) || jobs_.adopt(name, owner);
                    }},
               orphan_grace_ns) {
  services_.set_taken([this](const auto& name) { return orphans_.has(name); });
  jobs_.set_taken([this](const auto& name) { return orphans_.has(name); });
  objects.subscribe([&machine] { machine.wake(); });
  thread_ = std::thread([this] { run(); });
}

ServiceThread::~ServiceThread() {
  ends_ = true;
  machine_.wake();
  thread_.join();
}

bool ServiceThread::turn(int64_t now_ns) {
  machine_.begin_turn();
  now_ns_ = now_ns;
  bool changed = orphans_.turn(now_ns);  // First, so that no other program gets an orphan's name or port.
  changed |= services_.reconcile(now_ns);
  jobs_.serve_jobs(now_ns);
  const int64_t served_ns = os::monotonic_ns();
  if (jobs_.admit(now_ns)) jobs_.positions().note_decision(os::monotonic_ns() - served_ns);
  return changed | jobs_.has_changed();
}

void ServiceThread::run() {
  (void)os::keep_capabilities({});  // The launcher has the capabilities for programs of other users.
  // Times are UTC, so that they are valid across reboots, but advance with the monotonic clock, so that clock
  // steps do not change them.
  const int64_t offset_ns = os::utc_ns() - os::monotonic_ns();
  int64_t interval_ns = intervals_.min_ns;
  while (!ends_) {
    const bool changed = turn(os::monotonic_ns() + offset_ns);
    const int64_t longest_ns = jobs_.is_busy() ? intervals_.max_busy_ns : intervals_.max_ns;
    interval_ns = changed ? intervals_.min_ns : std::min(interval_ns * 3 / 2, longest_ns);
    if (machine_.wait(interval_ns) == ProgramEnds::Woken::by_end) interval_ns = intervals_.after_end_ns;
  }
}

}  // namespace carve::controller
