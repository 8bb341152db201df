// Schedules one device among its clients: which client may run, with how much work in flight, and when to
// poll next.
//
// The arbiter polls what its clients have running (Observation), calls step() with the time, and writes the
// leases that lease() returns. The scheduler has no clock, no thread and no allocation. Equal observations
// therefore give equal results, and a scenario of an hour runs in milliseconds.
//
// Clients are served in the order of these classes:
//   0  latency clients with tokens, immediately; gang followers whose leader has its lease
//   1  clients with tokens: fixed-share, guaranteed-burst-share
//   2  burst: guaranteed-burst-share without tokens, native-burst-share, clients without a share Inside a
//   class the order is start-time fair queueing over the shares. Tokens grow with the share of all time
//   (token_bucket.h). A fixed-share client is never in class 2, so it never exceeds its share. A guaranteed
//   client gets at least its share while it wants the device. Any client that can use the remaining time may
//   have it.
//
// Under a lease the gate is open. After a quantum, if another client waits, the gate closes and the work in
// flight drains; then the next gate opens. Only one gate is open at a time. The exception is a device on
// which all clients are native-burst-share with equal weights. There, all gates are open and the hardware
// switches between the clients. If two clients had work in flight at the same time, the time is split between
// them.
//
// False reports of a client do not cost another client its share: its part of such a time is at most what the
// driver reports for it (support()). The lease holder needs no such evidence, because the arbiter gave it the
// device.
//
// choice.cc chooses the next client and ends leases, polls.cc handles the drains and the times of polls, and
// device_scheduler.cc contains the charges, the leases and the step.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <span>

#include "share/fair.h"
#include "share/overlap.h"
#include "share/token_bucket.h"

namespace carve::share {

// The arbiter's reading of one client at a poll.
struct Observation {
  bool waiting = false;         // A thread of the client waits at its closed gate.
  bool in_flight = false;       // Work of the client on the device is not complete.
  bool back_pressured = false;  // A thread waits for its own work before it launches more.
  Ns left = 0;                  // Estimated time until that work is complete.
  Ns busy = 0;                  // Time since the last poll in which it had work on the device.
  Ns idle_since = 0;            // Time at which its last work ended.
  Ns longest = 0;               // Its longest known kernel or graph.
  bool leader_open = false;     // For gang followers: the leading device has opened its gate.
};

// Returns whether the client uses the device. A client with a back-pressured thread does, because the thread
// only has to wake up before it launches the next kernel.
inline bool at_work(const Observation& seen) { return seen.in_flight || seen.back_pressured; }

struct Lease {
  bool open = false;
  Ns in_flight_limit = 0;       // Limit of estimated work in flight, over all its threads.
  Ns deadline = 0;              // Time at which the lease ends without a further store; 0 if never.
  bool notify_on_idle = false;  // Wake the arbiter when this work ends, because another client waits.
  bool uncontended = false;     // No other client waits, so the completion time is not needed.
  bool draining = false;        // The lease has ended, and the next one waits for this client's work.
  bool imminent = false;        // Closed, and about to open, so the client's threads wake up and spin.

  friend bool operator==(const Lease&, const Lease&) = default;
};

// Sums since the client was added, in ns.
struct ClientCounters {
  Ns charged = 0;      // Its work and the switches to it.
  Ns burst = 0;        // The part of `charged` that was in the burst class.
  Ns waiting = 0;      // Time at the gate while another client had the device.
  Ns throttled = 0;    // Time at the gate while the device was free, because its share was used up.
  Ns overlapped = 0;   // The part of `charged` in which other clients had work in flight too.
  Ns unsupported = 0;  // Claimed during other clients' work but not shown by the driver. It uses up the
                       // share, but is not busy time.
  uint64_t leases = 0;
  uint64_t overruns = 0;  // Drains that reached their time limit.
};

// A change at a step, for traces.
struct Transition {
  enum class Kind : uint8_t { opened, closed, drained, overran } kind;
  uint8_t client;
};

class DeviceScheduler {
 public:
  explicit DeviceScheduler(Tuning tuning = {}) : tuning_(tuning) {}

  // Adds a client and returns its number, which identifies it in all other calls. Returns nothing if all
  // numbers are taken.
  std::optional<unsigned> add_client(const Entitlement&, Ns now);
  void remove_client(unsigned client, Ns now);
  void change(unsigned client, const Entitlement&, Ns now);  // From now on; tokens and counters stay.

  // Sets the usual delay between the wake-up of a thread and its execution on this machine (wake_latency.h).
  // Clients are woken before their gates open, and a pause in which a thread wakes up does not end a lease.
  // 0, the initial value, means unknown, and no client is woken early.
  void set_wake_latency(Ns usual);

  // Takes the driver's report of the client's work since the last call: whether it worked, and an upper bound
  // of its work.
  void support(unsigned client, bool worked, Ns at_most);

  // Evaluates one poll: `seen` has one observation per client. Returns the latest time for the next poll. The
  // time is `now` if a gate was closed at this step, because a launch may have passed it since the poll. The
  // time is `never` if a poll is needed only when a client arrives at its gate.
  Ns step(Ns now, std::span<const Observation> seen);

  const Lease& lease(unsigned client) const { return clients_[client].lease; }
  const ClientCounters& counters(unsigned client) const { return clients_[client].counters; }
  // Returns the part of the client's `waiting` in which each other client held the device. The entry of a
  // client is 0 again after it was removed.
  const std::array<Ns, max_clients>& waited_for(unsigned client) const { return clients_[client].waited_for; }
  const Entitlement& entitlement(unsigned client) const { return clients_[client].entitlement; }
  Ns tokens(unsigned client) const { return clients_[client].bucket.tokens(); }
  bool present(unsigned client) const { return present_[client]; }
  std::optional<unsigned> holder() const { return holder_; }
  bool is_draining() const { return draining_; }
  // The client whose gate opens after the drain.
  std::optional<unsigned> upcoming() const { return upcoming_; }
  Ns busy() const { return busy_; }  // Time in which work ran: the sum of all charges.
  uint64_t switches() const { return switches_; }
  std::span<const Transition> transitions() const { return {log_.data(), logged_}; }  // The last step's.
  const Tuning& tuning() const { return tuning_; }

 private:
  // The poll interval while a lease holder pauses between kernels. It is longer, so that not every pause is
  // polled.
  static constexpr Ns pause_poll_interval = 500 * us;

  enum Class : uint8_t { urgent, entitled, burst, not_eligible };
  // Why a client waits at its gate: because of other clients or because of its own share.
  enum class WaitReason : uint8_t { none, contended, throttled };
  struct Candidate {
    unsigned client;
    Class cls;
  };

  struct Client {
    Entitlement entitlement;
    Bucket bucket;
    FairTag fair[3];      // By class.
    bool queued = false;  // It waits; its tags have the time since when.
    WaitReason wait_reason = WaitReason::none;
    Lease lease;
    ClientCounters counters;
    std::array<Ns, max_clients> waited_for{};  // By the client that held the device.
    Ns service = 0;                            // Latency clients: running median of the time of a request.
    Ns paused = 0;                             // Charged time when it was last seen idle under its lease.
    Ns drain = 0;                              // Recent maximum of its drain times.
    Ns surprise = 1 * ms;                      // Large if recent drains ended earlier than expected.
    Ns credit = 0;               // Overlap that the driver's count supports and that is not charged yet.
    Ns own = 0;                  // Charged without needing support since the last support().
    bool is_shown = false;       // The driver's last count was not 0.
    bool is_doubtful = false;    // It claims work or takes leases although the driver's last count was 0.
    Ns claimed = 0;              // Charged and unsupported, at the last support().
    unsigned unused_leases = 0;  // In a row.
    bool is_away = false;        // It lost its lease in a pause and has not returned.
    bool pauses_long = false;    // Its last such pause was longer than the limit of a held pause.
  };

  Share weight(const Client&) const;
  void settle_mean_weight();  // Called when a client was added, changed or removed.
  Ns quantum() const;
  Ns idle_gap() const;
  Ns pause_limit(Ns now, const Observation& held, const std::optional<Candidate>& next) const;
  Ns depth(const Client&) const;
  Ns threshold(const Client&) const;
  Class class_of(unsigned client, const Observation&, bool holds) const;
  bool is_alone(unsigned client, std::span<const Observation>) const;
  Ns occupied(unsigned client, Ns elapsed, const Observation&);
  void charge(Ns elapsed, std::span<const Observation>);
  Supports supports() const;
  void pay(unsigned client, Ns used, Ns unsupported, bool overlapped);
  void spend(Client&, Class paid_as, Ns used);
  void queue(Ns now, std::span<const Observation>);
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
  Ns until_tokens(unsigned client, const Observation&) const;
  void foresee(Ns now, std::span<const Observation>);
  bool equal_natives() const;
  void note(Transition::Kind kind, unsigned client);
  void rebase();

  Tuning tuning_;
  std::array<Client, max_clients> clients_{};
  std::bitset<max_clients> present_;
  Share mean_weight_ = equal_weight;  // Of the clients that have a share. Clients without one get it.
  FairClock clock_[3];
  std::optional<unsigned> holder_;
  std::optional<unsigned> last_holder_, upcoming_;
  std::optional<unsigned> imminent_;  // The client whose gate opens within gate_lead_.
  Ns wake_latency_ = 0, gate_lead_ = 0;
  Class granted_ = burst;  // The class in which the holder was served.
  Ns lease_began_ = 0, quantum_began_ = 0;
  Ns lease_used_ = 0;
  Ns lease_worked_ = 0;  // Time in the current lease during which the holder had work on the device.
  Ns pause_ = 0;         // Pause of the lease holder that has not been charged yet.
  Ns unused_ = 0;        // Time in the current lease with the holder idle and another client waiting.
  bool draining_ = false;
  // When the drain began, and the first and the earliest estimate of its end.
  Ns drain_began_ = 0, drain_expected_ = 0, drain_ends_ = 0;
  bool all_open_ = false;
  bool contended_ = false;   // Since the last step a client that may run has been waiting.
  unsigned contenders_ = 0;  // Clients that wanted the device at the last step.
  Ns longest_ = 0;           // Longest kernel of all clients, at most max_drain.
  Ns last_ = 0;              // Time of the last step.
  Ns busy_ = 0;
  bool has_counts_ = false;  // The driver has reported some work, so it counts the work of clients.
  uint64_t switches_ = 0;
  std::array<Transition, 8> log_{};
  size_t logged_ = 0;
};

}  // namespace carve::share
