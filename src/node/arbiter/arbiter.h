// One shared device's arbiter: a thread that looks at what the tenants have running, asks share/ what to do,
// and sets their gates. Between two looks it sleeps in the kernel; while nobody needs it, for good. A tenant
// that comes to a closed gate wakes it (wire/shm/work.h, ArbiterWord).
//
// The agent's loop adds and removes tenants and asks for figures; a mutex stands between, held for some
// microseconds. Nothing that a tenant writes can make a look long: it is bounded by the places in its pages.
//
// When the agent is killed the gates stay as they are, leases end by their deadlines, and tenants follow the
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
#include "share/device.h"

namespace carve::node {

// What the arbiters of a tenant's devices tell each other (share::Gang).
struct GangBond {
  std::atomic<bool> open{false};       // The leader's gate is.
  std::atomic<uint32_t> wants{0};      // Bit by device: a follower stands at its gate.
  std::atomic<uint32_t> in_flight{0};  // Bit by device.
  class Arbiter* leader = nullptr;
  std::vector<class Arbiter*> followers;
};

// One tenant's part of a device, as its arbiter knows it. The pages must outlive its membership.
struct Governed {
  uint64_t tenant = 0;  // The ledger's id.
  share::Terms terms;
  unsigned device = 0;  // In the tenant's own order.
  shm::Control* control = nullptr;
  std::span<const shm::ProcessWork> work;  // Empty: a report without these pages; then it is not governed.
  std::shared_ptr<GangBond> bond;
};

class Arbiter {
 public:
  // `word`: where it sleeps; in the page that all tenants can read.
  Arbiter(unsigned device, const Uuid&, shm::ArbiterWord& word, share::Tuning tuning);
  ~Arbiter();  // Opens all gates.
  Arbiter(const Arbiter&) = delete;
  Arbiter& operator=(const Arbiter&) = delete;

  bool add(const Governed&, std::span<const unsigned> slots);  // False: too many.
  bool change(uint64_t tenant, const share::Terms&);           // False: it is not here.
  void remove(uint64_t tenant);
  void add_process(uint64_t tenant, unsigned slot);
  void remove_process(uint64_t tenant, unsigned slot);

  // Brings the accounts up to now, and remembers them for the windows of view(): to be called some times a
  // second.
  void sample();
  DeviceCompute view();
  std::vector<TraceSpan> trace(share::Ns from) const;  // What ended since then, as far as it is remembered.
  bool empty() const;
  void poke();  // Look now.

 private:
  struct Member;
  void run();
  share::Ns look(share::Ns now);  // This and the rest with the mutex held.
  void set_gate(Member&, share::Ns now);
  void write_timetable();
  void record(const Member&, SpanKind, share::Ns begin, share::Ns end);
  Member* find(uint64_t tenant);
  void sleep_until(share::Ns next, uint32_t poked, bool anybody_urgent);  // Not this one.
  bool somebody_came();

  static constexpr size_t most_spans = 200'000;  // Of five seconds of the busiest device; 8 MB.

  const unsigned device_;
  const Uuid uuid_;
  shm::ArbiterWord& word_;
  mutable std::mutex mutex_;
  share::Device decides_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Arbiter*> tell_;  // After this look.
  std::vector<TraceSpan> spans_;
  uint64_t spans_recorded_ = 0;
  Rate busy_;
  std::atomic<uint32_t> poked_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace carve::node
