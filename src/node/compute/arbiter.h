// The arbiter of one shared device: a thread that polls the slices' work, steps the device scheduler (share/)
// and sets the slices' leases. Between two polls it sleeps in the kernel, indefinitely while no slice needs
// it. A slice that arrives at a closed launch gate wakes it (wire/shm/work.h, ArbiterWord).
//
// The agent's loop adds and removes slices and reads figures under a mutex, which is held for a few
// microseconds. No other lock is taken while it is held. A slice cannot prolong a poll by what it writes,
// because a poll is bounded by the slots in the slice's pages.
//
// If the agent is killed, the gates keep their state and leases end at their deadlines. Slices then follow
// the fallback timetable in their control pages. The arbiters of the next agent start with all gates closed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/work_shown.h"
#include "node/agent/compute_figures.h"
#include "node/agent/trace.h"
#include "node/compute/meter.h"
#include "node/compute/rate.h"
#include "os/mutex.h"
#include "share/device_scheduler.h"
#include "share/wake_latency.h"

namespace carve::node {

// State that the arbiters of one slice's devices share (share::Gang).
struct GangState {
  std::atomic<bool> open{false};       // Whether the leader's gate is open.
  std::atomic<uint32_t> wants{0};      // One bit per device: a follower waits at its gate.
  std::atomic<uint32_t> in_flight{0};  // One bit per device.
  class Arbiter* leader = nullptr;
  std::vector<class Arbiter*> followers;
};

// One slice part as its arbiter schedules it. Its pages must live until remove().
struct ArbiterClient {
  uint64_t slice = 0;  // The ledger's id.
  share::Entitlement entitlement;
  unsigned device = 0;  // Index in the slice's own order.
  shm::Control* control = nullptr;
  std::span<const shm::ProcessWork> work;  // Indexed by slot.
  std::shared_ptr<GangState> gang;
};

class Arbiter {
 public:
  // The arbiter sleeps on `word`, which is in the page that all slices can read.
  Arbiter(unsigned device, const Uuid&, shm::ArbiterWord& word, share::Tuning tuning);
  ~Arbiter();  // Opens all gates.
  Arbiter(const Arbiter&) = delete;
  Arbiter& operator=(const Arbiter&) = delete;

  // Returns false if the device already has max_clients clients.
  bool add(const ArbiterClient&, std::span<const unsigned> slots) EXCLUDES(mutex_);
  // Returns false if the slice is not a client.
  bool change(uint64_t slice, const share::Entitlement&) EXCLUDES(mutex_);
  void remove(uint64_t slice) EXCLUDES(mutex_);
  void add_process(uint64_t slice, unsigned slot) EXCLUDES(mutex_);
  void remove_process(uint64_t slice, unsigned slot) EXCLUDES(mutex_);

  void support(uint64_t slice, const WorkShown&) EXCLUDES(mutex_);
  // Updates the counters and records them for the windows of view(). The agent calls it several times a
  // second.
  void sample() EXCLUDES(mutex_);
  DeviceCompute view() EXCLUDES(mutex_);
  // Returns the recorded spans that ended since `from`.
  std::vector<TraceSpan> trace(share::Ns from) const EXCLUDES(mutex_);
  bool empty() const EXCLUDES(mutex_);
  void wake();  // Makes the thread poll immediately.

 private:
  struct ClientState;
  void run() EXCLUDES(mutex_);
  share::Ns poll(share::Ns now) REQUIRES(mutex_);
  void set_lease(ClientState&, share::Ns now) REQUIRES(mutex_);
  void write_timetable() REQUIRES(mutex_);
  void settle(share::Ns now) REQUIRES(mutex_);
  void record(const ClientState&, SpanKind, share::Ns begin, share::Ns end) REQUIRES(mutex_);
  ClientState* find(uint64_t slice) REQUIRES(mutex_);
  void sleep_until(share::Ns next, uint32_t woken_count, bool any_latency_client) EXCLUDES(mutex_);
  bool another_waits() EXCLUDES(mutex_);

  static constexpr size_t max_spans = 200'000;  // About five seconds on the busiest device; 8 MB.

  const unsigned device_;
  const Uuid uuid_;
  shm::ArbiterWord& word_;
  mutable os::Mutex mutex_;
  share::DeviceScheduler scheduler_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<ClientState>> clients_ GUARDED_BY(mutex_);
  std::vector<Arbiter*> tell_ GUARDED_BY(mutex_);  // Arbiters to wake after this poll.
  std::vector<TraceSpan> spans_ GUARDED_BY(mutex_);
  uint64_t spans_recorded_ GUARDED_BY(mutex_) = 0;
  Rate busy_ GUARDED_BY(mutex_);
  share::WakeLatency latency_;  // Used only by the thread.
  std::atomic<uint32_t> wakes_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace carve::node
