// Simulates clients, one arbiter and one device under a virtual clock. src/share makes the decisions, and
// src/sim/model is the device. Between them is a model of programs, the guest library and the agent's thread:
// launches cost host time, and threads and the arbiter wake up late. Simulating an hour takes seconds and
// gives the same result each time.
#pragma once

#include <array>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "share/device_scheduler.h"
#include "share/wake_latency.h"
#include "sim/model/test_device.h"

namespace carve::share {

// The behaviour of one thread of a client.
struct Behaviour {
  Ns kernel = 200 * us;           // Length of one kernel, or of one node of a graph.
  Ns longest = 0;                 // If more than `kernel`, lengths are uniform between the two.
  unsigned nodes = 1;             // Kernels per launch of a graph, which cannot be interrupted.
  bool sync = false;              // Waits for each launch.
  Ns gap = 0;                     // The host's own work between two launches.
  Ns busy_for = 0, idle_for = 0;  // Alternating times with and without work; 0 for constant work.
  double requests = 0;            // Requests per second, Poisson; each is `per_request` launches and a wait.
  unsigned per_request = 1;
  unsigned width = 72;
  bool lies = false;  // Reports no work in flight and launches through closed gates.
  Ns begins = 0;      // Time after the start of the scenario.
};

struct Delays {
  Ns launch = 5 * us;       // Host time of a launch.
  Ns wake = 15 * us;        // Time from an opened gate or an awaited completion until the thread runs.
  Ns look = 10 * us;        // Time from a wake to the arbiter's poll; also the delay of its timer.
  Ns jitter = 0;            // Maximum that is added to each `wake` and `look`.
  bool compensates = true;  // The arbiter measures wake latencies and shortens waits by them.
};

class World {
 public:
  explicit World(Tuning tuning = {}, uint64_t seed = 1, Delays delays = {})
      : arbiter_(tuning), delays_(delays), random_(seed) {
    device_->facts.context_bytes = 1ull << 20;  // Small, so that many clients fit.
    device_->facts.switch_ns = static_cast<uint64_t>(tuning.switch_cost);
  }

  // Adds a client with one thread and stream per behaviour. Returns its number, which all other functions
  // take.
  unsigned add(const Entitlement& entitlement, std::vector<Behaviour> threads) {
    const auto client = arbiter_.add_client(entitlement, now());
    Client t;
    t.client = *client;
    t.context = device_.open();
    t.idle_since = now();
    for (const Behaviour& b : threads) {
      Thread thread;
      thread.does = b;
      thread.channel = static_cast<unsigned>(t.threads.size());
      thread.at = now() + b.begins;
      if (b.requests > 0) thread.next_request = thread.at;
      t.threads.push_back(thread);
    }
    clients_.push_back(std::move(t));
    look_at_ = now();
    return static_cast<unsigned>(clients_.size() - 1);
  }
  void remove(unsigned client) {  // Simulates a kill.
    Client& t = clients_[client];
    sim::abandon(*device_, t.context, device_.now);
    t.threads.clear();
    note_completions();
    arbiter_.remove_client(t.client, now());
    t.gone = true;
    look_at_ = now();
  }
  void change(unsigned client, const Entitlement& entitlement) {
    arbiter_.change(clients_[client].client, entitlement, now());
    look_at_ = now();
  }

  void run(Ns duration) { run_until(now() + duration); }
  void run_until(Ns end) {
    while (now() < end) {
      Ns next = std::min({end, look_at_, count_at_});
      const uint64_t event = sim::next_event(*device_);
      if (event != sim::never_time) next = std::min(next, static_cast<Ns>(event));
      for (const Client& t : clients_)
        for (const Thread& thread : t.threads) next = std::min(next, thread.at);
      advance_to(std::max(next, now()));
      for (Client& t : clients_)
        for (Thread& thread : t.threads)
          if (thread.at <= now()) act(t, thread);
      if (look_at_ <= now()) look();
      if (count_at_ <= now()) count();
    }
  }

  // Updates the charges up to now, for a read at the edge of a window.
  void settle() { look(); }

  Ns now() const { return static_cast<Ns>(device_.now); }
  const DeviceScheduler& arbiter() const { return arbiter_; }
  const ClientCounters& counters(unsigned client) const { return arbiter_.counters(clients_[client].client); }
  Ns charged(unsigned client) const { return counters(client).charged; }
  // Returns the time during which the device ran the client's kernels.
  Ns kernel_time(unsigned client) {
    sim::Device& d = *device_;
    const sim::Context& c = d.contexts[clients_[client].context];
    const bool runs = d.engine.compute == sim::Compute::running &&
                      d.engine.owner == static_cast<int32_t>(clients_[client].context);
    return static_cast<Ns>(c.busy_ns + (runs ? d.engine.now_ns - d.engine.accounted_ns : 0));
  }
  Ns device_time() {
    sim::Device& d = *device_;
    return static_cast<Ns>(d.engine.busy_ns + (d.engine.compute == sim::Compute::running
                                                   ? d.engine.now_ns - d.engine.accounted_ns
                                                   : 0));
  }
  // Returns the time during which any client had work on the device or waited at a gate, under any policy.
  Ns wanted() const { return wanted_; }
  Ns in_flight() const { return in_flight_; }
  std::vector<Ns>& latencies(unsigned client) { return clients_[client].latencies; }
  uint64_t looks() const { return looks_; }

 private:
  struct Thread {
    Behaviour does;
    unsigned channel = 0;
    Ns at = 0;  // Time of the next action; `never` while the thread waits.
    bool at_gate = false;
    bool at_sync = false;
    bool at_bound = false;
    Ns next_request = 0, request_began = 0;
    unsigned request_left = 0;
    bool is_woken = false;  // Woken because the gate is about to open; spins until it opens.
    Ns spins_from = 0, spins_until = 0;
    std::deque<std::pair<uint64_t, Ns>> flying;  // Sequence of each launch's last node, and its work.
    Ns flying_ns = 0;
  };
  struct Client {
    unsigned client = 0, context = 0;
    std::vector<Thread> threads;
    Ns busy = 0;  // Busy time since the last poll.
    Ns idle_since = 0;
    Ns longest = 0;
    Ns counted = 0;  // Kernel time at the last count.
    bool gone = false;
    std::vector<Ns> latencies;
  };

  static bool flies(const Client& t) {
    for (const Thread& thread : t.threads)
      if (!thread.flying.empty() && !thread.does.lies) return true;
    return false;
  }
  static bool waits(const Client& t) {
    for (const Thread& thread : t.threads)
      if (thread.at_gate) return true;
    return false;
  }

  void advance_to(Ns t) {
    const Ns dt = t - now();
    bool any = false, wanted = false;
    for (Client& client : clients_) {
      if (flies(client)) client.busy += dt, any = true;
      wanted |= flies(client) || waits(client);
    }
    if (any) in_flight_ += dt;
    if (wanted) wanted_ += dt;
    device_.until(static_cast<uint64_t>(t));
    note_completions();
  }
  void note_completions() {
    for (Client& t : clients_) {
      const bool flew = flies(t);
      for (Thread& thread : t.threads) {
        bool moved = false;
        while (!thread.flying.empty() &&
               sim::complete(*device_, t.context, thread.channel, thread.flying.front().first)) {
          thread.flying_ns -= thread.flying.front().second;
          thread.flying.pop_front();
          moved = true;
        }
        if (!moved) continue;
        if (thread.at_bound) thread.at = now(), thread.at_bound = false;
        if (thread.at_sync && thread.flying.empty()) {
          thread.at_sync = false;
          const Ns woken = now() + late(delays_.wake);
          thread.at = woken + thread.does.gap;
          if (thread.does.requests > 0) t.latencies.push_back(woken - thread.request_began);
          if (arbiter_.lease(t.client).notify_on_idle)
            look_at_ = std::min(look_at_, now() + late(delays_.look));
        }
      }
      if (flew && !flies(t)) t.idle_since = now();
    }
  }

  void act(Client& t, Thread& thread) {
    const Behaviour& does = thread.does;
    if (does.idle_for > 0 && (now() - start_) % (does.busy_for + does.idle_for) >= does.busy_for) {
      thread.at_gate = false;
      thread.at = now() + does.busy_for + does.idle_for - (now() - start_) % (does.busy_for + does.idle_for);
      return;
    }
    if (does.requests > 0 && thread.request_left == 0) {
      if (now() < thread.next_request) {
        thread.at = thread.next_request;
        return;
      }
      thread.request_began = thread.next_request;  // Even if it had to queue behind the previous request.
      thread.next_request += static_cast<Ns>(std::exponential_distribution<>(does.requests)(random_) * 1e9);
      thread.request_left = does.per_request;
    }
    const Lease& lease = arbiter_.lease(t.client);
    if (!lease.open && !does.lies) {
      if (!thread.at_gate) look_at_ = std::min(look_at_, now() + late(delays_.look));
      thread.at_gate = true;
      thread.is_woken = false;
      thread.at = never;
      return;
    }
    thread.at_gate = false;
    if (!thread.flying.empty() && !does.lies &&
        thread.flying_ns + does.kernel * does.nodes >
            lease.in_flight_limit / static_cast<Ns>(t.threads.size())) {
      thread.at_bound = true;
      thread.at = never;
      return;
    }
    if (thread.flying.size() * does.nodes + does.nodes > sim::ring_size) {  // The driver's queue is full.
      thread.at_bound = true;
      thread.at = never;
      return;
    }
    Ns work = 0;
    uint64_t last = 0;
    for (unsigned i = 0; i < does.nodes; ++i) {
      Ns length = does.kernel;
      if (does.longest > does.kernel)
        length = std::uniform_int_distribution<Ns>(does.kernel, does.longest)(random_);
      work += length;
      last = device_.kernel(t.context, thread.channel, static_cast<uint64_t>(length), does.width);
    }
    t.longest = std::max(t.longest, work);
    thread.flying.emplace_back(last, work);
    thread.flying_ns += work;
    if (thread.request_left > 0) --thread.request_left;
    if (does.requests > 0 ? thread.request_left == 0 : does.sync) {
      thread.at_sync = true;
      thread.at = never;
    } else {
      thread.at = now() + delays_.launch + does.gap;
    }
  }

  // Simulates what the driver reports about each client's kernels, in whole percents, at each of the agent's
  // samples. Every other time it names one client and bounds the others only widely.
  void count() {
    constexpr Ns interval = 250 * ms;
    count_at_ = now() + interval;
    look();
    const uint64_t turn = counts_++;
    const bool names_one = turn % 2 == 0;
    const uint64_t named = turn / 2 % std::max<size_t>(1, clients_.size());
    for (unsigned i = 0; i < clients_.size(); ++i) {
      Client& t = clients_[i];
      if (t.gone) continue;
      const Ns ran = kernel_time(i), shown = ran - std::exchange(t.counted, ran);
      const Ns percent = std::clamp<Ns>(shown / (interval / 100), 0, 100);
      const Ns at_most = std::min<Ns>(100, percent + (names_one ? 11 : percent / 4));
      arbiter_.support(t.client, names_one ? i == named : percent > 0, at_most * interval / 100);
    }
  }
  void look() {
    ++looks_;
    std::array<Observation, max_clients> seen{};
    for (Client& t : clients_) {
      if (t.gone) continue;
      Observation& o = seen[t.client];
      o.waiting = waits(t);
      o.in_flight = flies(t);
      for (const Thread& thread : t.threads)
        if (!thread.does.lies) o.left = std::max(o.left, thread.flying_ns);
      o.busy = t.busy;
      o.idle_since = t.idle_since;
      o.longest = t.longest;
      t.busy = 0;
    }
    if (delays_.compensates) arbiter_.set_wake_latency(latency_.median());
    look_at_ = poll_after(arbiter_.step(now(), seen));
    for (Client& t : clients_)
      for (Thread& thread : t.threads)
        if (!t.gone && thread.at_gate) follow_lease(arbiter_.lease(t.client), thread);
  }

  Ns late(Ns usual) {
    return delays_.jitter == 0 ? usual
                               : usual + std::uniform_int_distribution<Ns>(0, delays_.jitter)(random_);
  }

  // Returns when the arbiter's thread runs if it waits until `next` (Arbiter::sleep_until).
  Ns poll_after(Ns next) {
    const Ns by = late(delays_.look);
    if (next == never) return never;
    if (!delays_.compensates) return next + by;
    const Ns lead = latency_.timer_lead();
    if (next - now() <= 2 * lead) return next;
    latency_.add(by);
    return std::max(next, next - lead + by);
  }

  void follow_lease(const Lease& lease, Thread& thread) {
    if (lease.imminent && !thread.is_woken) {
      thread.is_woken = true;
      thread.spins_from = now() + late(delays_.wake);
      thread.spins_until = thread.spins_from + 200 * us;
    }
    if (!lease.open) return;
    thread.at_gate = false;
    const bool runs = thread.is_woken && now() <= thread.spins_until;
    thread.at = runs ? std::max(now() + us, thread.spins_from) : now() + late(delays_.wake);
  }

  sim::TestDevice device_;
  DeviceScheduler arbiter_;
  Delays delays_;
  std::mt19937_64 random_;
  uint64_t counts_ = 0;
  std::vector<Client> clients_;
  Ns start_ = static_cast<Ns>(sim::TestDevice::start);
  Ns look_at_ = never, count_at_ = 0;
  Ns wanted_ = 0, in_flight_ = 0;
  uint64_t looks_ = 0;
  WakeLatency latency_;
};

}  // namespace carve::share
