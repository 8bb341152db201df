// One device and its clients over time: who may run now, with how much in flight, and when to look again.
//
// The arbiter looks at what its clients have running (Observation), calls step() with the time, and sets the
// gates as gate() says; in between nothing happens here. There is no clock, no thread and no allocation, so
// the same looks give the same answers, and a scenario of an hour is played in milliseconds.
//
// Who is served, in this order:
//   0  latency clients with tokens, at once; and gang members whose leader runs elsewhere
//   1  clients with tokens: fixed-share, guaranteed-burst-share
//   2  burst: guaranteed without tokens, native-burst, clients without a share; never fixed-share
// and inside a class by start-time fair queueing over the shares. Tokens grow by the share of all time
// (bucket.h). So a fixed-share client never has more than its share, a guaranteed one never less while it
// wants it, and whatever is left goes to whoever can use it.
//
// A lease: the gate is open; after a quantum, if somebody else waits, it closes and what is in flight drains;
// then the next gate opens. Only one gate is open at a time, except where the hardware does as well: all
// clients native-burst with equal weights. What ran while two were in flight is split between them.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <span>

#include "share/bucket.h"
#include "share/fair.h"

namespace carve::share {

// What the arbiter saw of one client at a look.
struct Observation {
  bool waiting = false;         // A thread of it stands at its closed gate.
  bool in_flight = false;       // It has work on the device that did not complete.
  bool back_pressured = false;  // A thread waits for its own work to end, to launch more.
  Ns left = 0;                  // Estimated: what that work will take.
  Ns busy = 0;                  // How long since the last look it had work on the device.
  Ns idle_since = 0;            // While nothing is in flight: since when.
  Ns longest = 0;               // Its longest kernel or graph, as far as known.
  bool leader_open = false;     // Gang: the leading device has opened for it.
};

struct Lease {
  bool open = false;
  Ns in_flight_limit = 0;  // Estimated work in flight, for all its threads together.
  Ns deadline = 0;         // The lease ends then though nobody says so; 0: it does not.
  bool notify_on_idle =
      false;                 // Somebody waits who would gain from hearing at once that this one has finished.
  bool uncontended = false;  // No gate opens or closes by when its work ends.

  friend bool operator==(const Lease&, const Lease&) = default;
};

// What happened, ever, in ns.
struct ClientCounters {
  Ns charged = 0;     // Its work, with the switches into it.
  Ns burst = 0;       // Of it, what it had as a burst client.
  Ns waiting = 0;     // It stood at the gate while somebody else had the device.
  Ns throttled = 0;   // It stood at the gate though nobody had it: beyond its share.
  Ns overlapped = 0;  // Of what it was charged, while others had work in flight too.
  uint64_t leases = 0;
  uint64_t overruns = 0;  // Drains given up.
};

// For traces: what changed at a step.
struct Transition {
  enum class Kind : uint8_t { opened, closed, drained, overran } kind;
  uint8_t client;
};

class DeviceScheduler {
 public:
  explicit DeviceScheduler(Tuning tuning = {}) : tuning_(tuning) {}

  // The place that it got, by which it is known here; nothing where all are taken.
  std::optional<unsigned> add_client(const Entitlement&, Ns now);
  void remove_client(unsigned client, Ns now);
  void change(unsigned client, const Entitlement&, Ns now);  // From now on; what was used is not forgotten.

  // One look: `seen` by place. Returns when to look again at the latest: `now` where a gate was closed
  // and nobody saw yet whether something slipped in before that; `never`: only when somebody comes to a gate.
  Ns step(Ns now, std::span<const Observation> seen);

  const Lease& lease(unsigned client) const { return clients_[client].lease; }
  const ClientCounters& counters(unsigned client) const { return clients_[client].counters; }
  const Entitlement& entitlement(unsigned client) const { return clients_[client].entitlement; }
  Ns tokens(unsigned client) const { return clients_[client].bucket.tokens(); }
  bool present(unsigned client) const { return present_[client]; }
  std::optional<unsigned> holder() const { return holder_; }
  bool is_draining() const { return draining_; }
  std::optional<unsigned> upcoming() const { return upcoming_; }  // Who opens when the drain has ended.
  Ns busy() const { return busy_; }  // Something ran: the sum of all that was charged.
  uint64_t switches() const { return switches_; }
  std::span<const Transition> transitions() const { return {log_.data(), logged_}; }  // Of the last step.
  const Tuning& tuning() const { return tuning_; }

 private:
  enum Class : uint8_t { urgent, entitled, burst, not_eligible };
  enum class WaitReason : uint8_t {
    none,
    contended,
    throttled
  };  // At the gate: by others, by its own share.
  struct Candidate {
    unsigned client;
    Class cls;
  };

  struct Client {
    Entitlement entitlement;
    Bucket bucket;
    FairTag fair[3];      // By class.
    bool queued = false;  // It waits, and its tags say since when.
    WaitReason wait_reason = WaitReason::none;
    Lease lease;
    ClientCounters counters;
    Ns service = 0;  // Latency clients: what a request takes, a running median.
    Ns paused = 0;   // What it had been charged when it last was seen to do nothing though it could.
    Ns drain = 0;    // What its drains took of late, at most.
  };

  Share weight(const Client&) const;
  Ns quantum() const;
  Ns depth(const Client&) const;
  Ns threshold(const Client&) const;
  Class class_of(unsigned client, const Observation&, bool holds) const;
  bool is_alone(unsigned client, std::span<const Observation>) const;
  Ns occupied(unsigned client, Ns elapsed, const Observation&);
  void charge(Ns elapsed, std::span<const Observation>);
  void pay(unsigned client, Ns used, bool overlapped);
  void queue(std::span<const Observation>);
  std::optional<Candidate> pick_next(std::span<const Observation>) const;
  bool must_yield(Ns now, std::span<const Observation>);
  Ns idle_from(const Observation&) const;
  bool drained(Ns now, std::span<const Observation>);
  void open(const Candidate&, Ns now);
  void begin_quantum(Class, Ns now);
  void end_lease();
  void set_leases(Ns now, std::span<const Observation>);
  Ns in_flight_limit_of(unsigned client, std::span<const Observation>) const;
  Ns next_poll(Ns now, std::span<const Observation>) const;
  bool equal_natives() const;
  void note(Transition::Kind kind, unsigned client);
  void rebase();

  Tuning tuning_;
  std::array<Client, max_clients> clients_{};
  std::bitset<max_clients> present_;
  FairClock clock_[3];
  std::optional<unsigned> holder_;
  std::optional<unsigned> last_holder_, upcoming_;
  Class granted_ = burst;  // The class in which the holder was served.
  Ns lease_began_ = 0, quantum_began_ = 0;
  Ns lease_used_ = 0;
  Ns pause_ = 0;  // Of the holder, not charged yet.
  bool draining_ = false;
  Ns drain_began_ = 0;
  bool all_open_ = false;
  bool contended_ = false;   // Since the last step somebody waits who could run.
  unsigned contenders_ = 0;  // How many wanted the device at the last step.
  Ns longest_ = 0;           // Of all present clients' kernels, as far as a drain waits for one.
  Ns last_ = 0;              // The last step.
  Ns busy_ = 0;
  uint64_t switches_ = 0;
  std::array<Transition, 8> log_{};
  size_t logged_ = 0;
};

}  // namespace carve::share
