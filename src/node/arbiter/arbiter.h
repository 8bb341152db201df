// One shared device's arbiter: a thread that looks at what the slices have running, asks share/ what to do,
// and sets their gates. Between two looks it sleeps in the kernel; while nobody needs it, for good. A slice
// that comes to a closed gate wakes it (wire/shm/work.h, ArbiterWord).
//
// The agent's loop adds and removes slices and asks for figures; a mutex stands between, held for some
// microseconds. Nothing that a slice writes can make a look long: it is bounded by the places in its pages.
//
// When the agent is killed the gates stay as they are, leases end by their deadlines, and slices follow the
// timetable that lies in their control pages; the next agent's arbiters begin with all gates closed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "node/arbiter/meter.h"
#include "node/arbiter/rate.h"
#include "node/arbiter/trace.h"
#include "node/arbiter/view.h"
#include "share/device_scheduler.h"

namespace carve::node {

// What the arbiters of a slice's devices tell each other (share::Gang).
struct GangState {
  std::atomic<bool> open{false};       // The leader's gate is.
  std::atomic<uint32_t> wants{0};      // Bit by device: a follower stands at its gate.
  std::atomic<uint32_t> in_flight{0};  // Bit by device.
  class Arbiter* leader = nullptr;
  std::vector<class Arbiter*> followers;
};

// One slice's part of a device, as its arbiter knows it. The pages must outlive its membership.
struct ArbiterClient {
  uint64_t slice = 0;  // The ledger's id.
  share::Entitlement entitlement;
  unsigned device = 0;  // In the slice's own order.
  shm::Control* control = nullptr;
  std::span<const shm::ProcessWork> work;  // By slot.
  std::shared_ptr<GangState> gang;
};

class Arbiter {
 public:
  // `word`: where it sleeps; in the page that all slices can read.
  Arbiter(unsigned device, const Uuid&, shm::ArbiterWord& word, share::Tuning tuning);
  ~Arbiter();  // Opens all gates.
  Arbiter(const Arbiter&) = delete;
  Arbiter& operator=(const Arbiter&) = delete;

  bool add(const ArbiterClient&, std::span<const unsigned> slots);  // False: too many.
  bool change(uint64_t slice, const share::Entitlement&);           // False: it is not here.
  void remove(uint64_t slice);
  void add_process(uint64_t slice, unsigned slot);
  void remove_process(uint64_t slice, unsigned slot);

  // Brings the accounts up to now, and remembers them for the windows of view(): to be called some times a
  // second.
  void sample();
  DeviceCompute view();
  std::vector<TraceSpan> trace(share::Ns from) const;  // What ended since then, as far as it is remembered.
  bool empty() const;
  void wake();  // Look now.

 private:
  struct ClientState;
  void run();
  share::Ns poll(share::Ns now);  // This and the rest with the mutex held.
  void set_lease(ClientState&, share::Ns now);
  void write_timetable();
  void record(const ClientState&, SpanKind, share::Ns begin, share::Ns end);
  ClientState* find(uint64_t slice);
  void sleep_until(share::Ns next, uint32_t woken_count, bool any_latency_client);  // Not this one.
  bool another_waits();

  static constexpr size_t max_spans = 200'000;  // Of five seconds of the busiest device; 8 MB.

  const unsigned device_;
  const Uuid uuid_;
  shm::ArbiterWord& word_;
  mutable std::mutex mutex_;
  share::DeviceScheduler scheduler_;
  std::vector<std::unique_ptr<ClientState>> clients_;
  std::vector<Arbiter*> tell_;  // After this look.
  std::vector<TraceSpan> spans_;
  uint64_t spans_recorded_ = 0;
  Rate busy_;
  std::atomic<uint32_t> wakes_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace carve::node
