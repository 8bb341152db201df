#include "controller/service_thread.h"

#include <algorithm>

#include "os/capabilities.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

constexpr int64_t min_interval_ns = 10 * os::millisecond;
constexpr int64_t max_interval_ns = os::second;
constexpr int64_t max_busy_interval_ns = 100 * os::millisecond;

}  // namespace

ServiceThread::ServiceThread(ObjectRegistry& objects, WorkloadRecords records,
                             const MakeJobLoop& make_job_loop, Machine& machine, OrphanEvents& events,
                             int64_t orphan_grace_ns)
    : machine_(machine),
      services_(objects, std::move(records), machine),
      jobs_(make_job_loop(machine)),
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
  objects.subscribe([this] {
    const os::MutexLock lock(mutex_);
    has_changed_ = true;
    woken_.notify_all();
  });
  thread_ = std::thread([this] { run(); });
}

ServiceThread::~ServiceThread() {
  {
    const os::MutexLock lock(mutex_);
    ends_ = true;
    woken_.notify_all();
  }
  thread_.join();
}

bool ServiceThread::wait(int64_t interval_ns) {
  const os::MutexLock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(interval_ns);
  while (!has_changed_ && !ends_ && woken_.wait_until(mutex_, deadline)) {}
  has_changed_ = false;
  return !ends_;
}

void ServiceThread::run() {
  (void)os::keep_capabilities({});  // The launcher has those that programs of other users need.
  // Moments are UTC, so that they are valid over a boot, and advance with the monotonic clock, so that a step
  // of the clock moves none of them.
  const int64_t offset_ns = os::utc_ns() - os::monotonic_ns();
  int64_t interval_ns = min_interval_ns;
  do {
    machine_.begin_turn();
    const int64_t now_ns = os::monotonic_ns() + offset_ns;
    now_ns_ = now_ns;
    bool changed = orphans_.turn(now_ns);  // First, so that no other program gets an orphan's name or port.
    changed |= services_.turn(now_ns);
    jobs_.serve_jobs(now_ns);
    const int64_t served_ns = os::monotonic_ns();
    if (jobs_.admit(now_ns)) jobs_.positions().note_decision(os::monotonic_ns() - served_ns);
    changed |= jobs_.has_changed();
    const int64_t longest_ns = jobs_.is_busy() ? max_busy_interval_ns : max_interval_ns;
    interval_ns = changed ? min_interval_ns : std::min(interval_ns * 3 / 2, longest_ns);
  } while (wait(interval_ns));
}

}  // namespace carve::controller
