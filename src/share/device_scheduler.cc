#include "share/device_scheduler.h"

#include <utility>

#include "core/invariant.h"

namespace carve::share {
namespace {

// The shortest interval between two polls: a sleep is not more exact.
constexpr Ns min_poll_interval = 20 * us;
// While work runs and another client waits, the poll interval grows with the uninterrupted run time, so that
// little time is lost at the end of the work: max(run / 64, 500 us).
constexpr Ns min_idle_poll_interval = 500 * us;
constexpr Ns idle_poll_interval(Ns without_pause) {
  return std::max(without_pause / 64, min_idle_poll_interval);
}
// The poll interval for a lease holder that pauses between kernels, so that not every pause is polled.
constexpr Ns pause_poll_interval = 500 * us;
constexpr Ns max_drain_poll_interval = 1 * ms;
// The shortest pause of a fixed-share client. Each pause costs about 0.1 ms that the client is charged for:
// two wakes (of the arbiter and of the client), and the late observation of the end of its work.
constexpr Ns min_pause = 2 * ms;

// The overlap that a client is believed before the driver's first count, and between two counts, which come
// every 250 ms.
constexpr Ns first_credit = 50 * ms, max_credit = 250 * ms;
// The driver counts in whole percents, over other periods than the arbiter.
constexpr Ns with_margin(Ns shown) { return shown + shown / 4; }
// A thread that is late on a busy machine may miss one lease.
constexpr unsigned free_unused_leases = 1;

// Returns whether the client uses the device. A back-pressured thread does: it has to wake up before it
// launches the next kernel.
bool at_work(const Observation& seen) { return seen.in_flight || seen.back_pressured; }

}  // namespace

std::optional<unsigned> DeviceScheduler::add_client(const Entitlement& entitlement, Ns now) {
  for (unsigned i = 0; i < max_clients; ++i) {
    if (present_[i]) continue;
    present_[i] = true;
    clients_[i] = {};
    change(i, entitlement, now);
    // A new client must not wait for its first token.
    clients_[i].bucket.set(depth(clients_[i]) / 2);
    clients_[i].credit = first_credit;
    invariant(holder_ != i && !clients_[i].lease.open, "a new client comes to a closed gate");
    return i;
  }
  return std::nullopt;
}

void DeviceScheduler::remove_client(unsigned client, Ns now) {
  invariant(client < max_clients);
  if (!present_[client]) return;
  if (holder_ == client) {
    note(Transition::Kind::drained, client);
    end_lease();
  }
  if (last_holder_ == client) last_holder_.reset();
  present_[client] = false;
  settle_mean_weight();
  clients_[client].lease = {};
  last_ = std::max(last_, now);
  invariant(holder_ != client && last_holder_ != client);
}

void DeviceScheduler::change(unsigned client, const Entitlement& entitlement, Ns now) {
  invariant(client < max_clients);
  invariant(present_[client], "only a registered client has an entitlement");
  Client& t = clients_[client];
  t.entitlement = entitlement;
  settle_mean_weight();
  t.bucket.limit(depth(t));
  invariant(t.bucket.tokens() <= depth(t));
  last_ = std::max(last_, now);
}

Share DeviceScheduler::weight(const Client& t) const {
  if (t.entitlement.share.basis_points != 0) return t.entitlement.share;
  return t.entitlement.best_effort ? best_effort_weight : mean_weight_;
}

void DeviceScheduler::settle_mean_weight() {
  uint64_t sum = 0, count = 0;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i] || clients_[i].entitlement.share.basis_points == 0) continue;
    sum += clients_[i].entitlement.share.basis_points;
    ++count;
  }
  mean_weight_ = count == 0 ? equal_weight : Share{static_cast<uint32_t>(std::max<uint64_t>(sum / count, 1))};
  invariant(mean_weight_.basis_points != 0);
}

Ns DeviceScheduler::quantum() const {
  return std::max(2 * ms, std::min(tuning_.quantum(), tuning_.round / std::max(1u, contenders_)));
}

Ns DeviceScheduler::depth(const Client& t) const {
  // While a long kernel of another client runs, the client goes on saving.
  return std::max(t.entitlement.latency == LatencyClass::latency ? tuning_.latency_depth : 0,
                  tuning_.depth() + longest_);
}

// Returns the tokens that a fixed-share client must have before it may start again, so that its lease lasts a
// quantum. It runs for threshold / (1 - share).
Ns DeviceScheduler::threshold(const Client& t) const {
  const int64_t share = std::min<int64_t>(weight(t).basis_points, 10000);
  invariant(share > 0);
  const Ns length = contenders_ <= 1 ? tuning_.quantum_alone : quantum();
  const Ns enough =
      std::min(std::max({length * (10000 - share) / 10000, min_pause * share / 10000, Ns{1}}), depth(t) / 2);
  invariant(enough > 0, "a client without tokens may not start");
  return enough;
}

DeviceScheduler::Class DeviceScheduler::class_of(unsigned client, const Observation& seen, bool holds) const {
  const Client& t = clients_[client];
  const bool has_share = t.entitlement.share.basis_points != 0;
  const bool follows = t.entitlement.gang == Gang::follows;
  if (follows && !seen.leader_open) return not_eligible;
  if ((follows || t.entitlement.latency == LatencyClass::latency) && has_share && t.bucket.any())
    return urgent;
  if (!has_share) return burst;
  switch (t.entitlement.policy) {
    case Policy::fixed_share: {
      const bool enough = holds ? t.bucket.any() : t.bucket.until(threshold(t), t.entitlement.share) == 0;
      return enough ? entitled : not_eligible;
    }
    case Policy::guaranteed_burst_share: return t.bucket.any() ? entitled : burst;
    case Policy::native_burst_share: return burst;
  }
  return burst;
}

bool DeviceScheduler::is_alone(unsigned client, std::span<const Observation> seen) const {
  for (unsigned i = 0; i < max_clients; ++i)
    if (present_[i] && i != client && !clients_[i].is_doubtful && (seen[i].waiting || seen[i].in_flight))
      return false;
  return true;
}

// Returns the time that a client is charged for: its work and, if it is the lease holder and others wait,
// also the pauses between its kernels, because the device is idle for it.
Ns DeviceScheduler::occupied(unsigned client, Ns elapsed, const Observation& seen) {
  if (holder_ != client || !contended_) return seen.busy;
  if (lease_used_ + seen.busy <= 0 && !seen.in_flight) return seen.busy;
  // A pause may be the end of the work, so it is charged when it has ended.
  const Ns before = seen.busy > 0 ? std::exchange(pause_, 0) : 0;
  if (!at_work(seen)) pause_ += std::clamp<Ns>(last_ - seen.idle_since, 0, elapsed);
  return std::max(seen.busy, before + elapsed - (at_work(seen) ? 0 : pause_));
}

// Charges the elapsed time to the clients that had work in flight. If several had, each is charged its part,
// so that the charges never exceed the elapsed time.
void DeviceScheduler::charge(Ns elapsed, std::span<const Observation> seen) {
  if (elapsed <= 0) return;
  invariant(pause_ >= 0);
  const Ns most = elapsed + pause_;
  Parts had{};
  Ns total = 0;
  unsigned busy = 0;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    had[i] = std::clamp<Ns>(occupied(i, elapsed, seen[i]), 0, most);
    total += had[i];
    busy += had[i] > 0;
  }
  const Ns all = std::min(total, busy > 1 ? elapsed : most);
  Parts claimed{}, believed{};
  const Ns claims = split(all, had, claimed);
  invariant(claims == all, "the clients are charged exactly the time in which the device was busy");
  // A driver that does not count the work of each client shows nothing, and contradicts no claim.
  const Ns charged =
      busy > 1 && has_counts_ ? split_supported(all, had, supports(), believed) : split(all, had, believed);
  for (unsigned i = 0; i < max_clients; ++i)
    if (had[i] > 0) pay(i, believed[i], std::max<Ns>(0, claimed[i] - believed[i]), busy > 1);
  invariant(charged <= all && all <= most);
  busy_ += charged;
}

Supports DeviceScheduler::supports() const {
  Supports out;
  for (unsigned i = 0; i < max_clients; ++i)
    out[i] = {.credit = i == holder_ ? never : clients_[i].credit, .is_shown = clients_[i].is_shown};
  return out;
}

void DeviceScheduler::support(unsigned client, Ns shown) {
  invariant(client < max_clients && present_[client]);
  invariant(shown >= 0);
  Client& t = clients_[client];
  t.is_shown = shown > 0;
  has_counts_ |= t.is_shown;
  const Ns claimed = t.counters.charged + t.counters.unsupported;
  const Ns since = claimed - std::exchange(t.claimed, claimed);
  t.is_doubtful =
      has_counts_ && !t.is_shown && (since > first_credit || t.unused_leases > free_unused_leases);
  t.credit = std::min(max_credit, t.credit + std::max<Ns>(0, with_margin(shown) - std::exchange(t.own, 0)));
  invariant(t.credit >= 0);
}

void DeviceScheduler::spend(Client& t, Class paid_as, Ns used) {
  // Time that no other client was entitled to costs no tokens and earns none.
  t.bucket.pay(paid_as == burst ? used * std::min<int64_t>(t.entitlement.share.basis_points, 10000) / 10000
                                : used);
  if (paid_as != not_eligible) FairClock::serve(t.fair[paid_as], used, weight(t));
}

void DeviceScheduler::pay(unsigned client, Ns used, Ns unsupported, bool overlapped) {
  invariant(used >= 0 && unsupported >= 0);
  Client& t = clients_[client];
  const bool holds = holder_ == client;
  const Class paid_as = holds ? granted_ : t.entitlement.policy == Policy::fixed_share ? entitled : burst;
  t.counters.charged += used;
  t.counters.unsupported += unsupported;
  if (overlapped) t.counters.overlapped += used;
  if (overlapped && !holds)
    t.credit = std::max<Ns>(0, t.credit - used);
  else
    t.own += used;
  if (paid_as == burst) t.counters.burst += used;
  spend(t, paid_as, used + unsupported);
  if (holds) lease_used_ += used;
  invariant(t.counters.burst <= t.counters.charged);
  invariant(t.counters.overlapped <= t.counters.charged);
}

void DeviceScheduler::queue(std::span<const Observation> seen) {
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    Client& t = clients_[i];
    if (holder_ == i || !seen[i].waiting) {
      t.queued = false;
    } else if (!t.queued) {
      t.queued = true;
      for (unsigned c = 0; c < 3; ++c) clock_[c].arrive(t.fair[c]);
    }
  }
}

// Returns the next of the clients that wait at a closed gate.
std::optional<DeviceScheduler::Candidate> DeviceScheduler::pick_next(
    std::span<const Observation> seen) const {
  std::optional<Candidate> best;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i] || holder_ == i || !seen[i].waiting) continue;
    const Class c = class_of(i, seen[i], false);
    if (c == not_eligible) continue;
    if (!best || c < best->cls ||
        (c == best->cls && clients_[i].fair[c].start < clients_[best->client].fair[c].start))
      best = {i, c};
  }
  invariant(!best || best->cls != not_eligible);
  return best;
}

// Returns whether the lease holder's gate closes now. A holder that has used up its quantum and goes on
// begins a new one.
bool DeviceScheduler::must_yield(Ns now, std::span<const Observation> seen) {
  invariant(holder_.has_value() && !draining_);
  const unsigned h = *holder_;
  Client& t = clients_[h];
  const Class cls = class_of(h, seen[h], true);
  if (cls == not_eligible) return true;
  const auto candidate = pick_next(seen);
  const bool idle = !at_work(seen[h]) && now >= idle_from(seen[h]) + tuning_.idle_gap();
  // An idle burst client that is alone keeps its gate open. A fixed-share client must come to a closed gate,
  // so that the arbiter sees its return.
  if (idle && (candidate || t.entitlement.policy == Policy::fixed_share)) return true;
  if (!candidate) return false;
  if (candidate->cls == urgent && granted_ != urgent) return true;
  if (now - quantum_began_ < quantum()) return false;
  if (candidate->cls < cls) return true;
  if (candidate->cls == cls && clients_[candidate->client].fair[cls].start <= t.fair[cls].finish) return true;
  begin_quantum(cls, now);
  return false;
}

// Returns the time since which the lease holder leaves the device idle. A thread that just got the lease has
// to wake up first. Until the holder has paid for work under this lease, `idle_since` is only its word, and a
// client that reports it as `now` for ever would keep the device.
Ns DeviceScheduler::idle_from(const Observation& seen) const {
  return lease_used_ > 0 ? seen.idle_since : lease_began_ + tuning_.wake;
}

bool DeviceScheduler::drained(Ns now, std::span<const Observation> all) {
  invariant(holder_.has_value() && draining_);
  const Observation& seen = all[*holder_];
  Client& t = clients_[*holder_];
  const Ns took = now - drain_began_;
  if (!seen.in_flight) {
    t.drain = std::max(took, t.drain - t.drain / 8);
    note(Transition::Kind::drained, *holder_);
    return true;
  }
  const auto next = pick_next(all);
  const bool urgent_waits = next && next->cls == urgent;
  const Ns time_limit = urgent_waits ? tuning_.max_drain_urgent : tuning_.max_drain;
  invariant(tuning_.min_drain <= time_limit);
  const Ns most = std::clamp(2 * std::max(seen.longest, t.drain), tuning_.min_drain, time_limit);
  if (took < most) return false;
  // The client's estimate of its kernels may be wrong, so the next drain may take twice as long. If the drain
  // had the longest time limit, its work may wait for a later launch and never drain.
  if (!urgent_waits) t.drain = most < time_limit ? most : 0;
  ++t.counters.overruns;
  note(Transition::Kind::overran, *holder_);
  return true;
}

void DeviceScheduler::begin_quantum(Class cls, Ns now) {
  invariant(cls != not_eligible);
  Client& t = clients_[*holder_];
  granted_ = cls;
  quantum_began_ = now;
  clock_[cls].arrive(t.fair[cls]);
  clock_[cls].begin(t.fair[cls]);
}

void DeviceScheduler::open(const Candidate& next, Ns now) {
  invariant(!holder_, "two leases of one device never overlap");
  invariant(present_[next.client] && next.cls != not_eligible);
  Client& t = clients_[next.client];
  holder_ = next.client;
  lease_used_ = pause_ = unused_ = 0;
  draining_ = false;
  // The client arrived when it came to the gate. Its tag has that time and stays.
  granted_ = next.cls;
  lease_began_ = quantum_began_ = now;
  clock_[next.cls].begin(t.fair[next.cls]);
  ++t.counters.leases;
  if (last_holder_ != holder_) ++switches_;
  last_holder_ = holder_;
  note(Transition::Kind::opened, next.client);
}

void DeviceScheduler::end_lease() {
  invariant(holder_.has_value());
  invariant(present_[*holder_], "a client that leaves returns its lease first");
  Client& t = clients_[*holder_];
  // A client that takes leases and leaves the device idle pays for the time that the others waited.
  t.unused_leases = lease_used_ > 0 ? 0 : t.unused_leases + 1;
  if (t.unused_leases > free_unused_leases) spend(t, granted_, unused_);
  // A running median: each new value moves it by 1/16 of itself.
  if (t.entitlement.latency == LatencyClass::latency && lease_used_ > 0) {
    const Ns step = std::max<Ns>(t.service / 16, 10 * us);
    if (t.service == 0)
      t.service = lease_used_;
    else
      t.service += lease_used_ > t.service ? step : -step;
  }
  for (unsigned c = 0; c < 3; ++c) clock_[c].arrive(t.fair[c]);
  t.queued = true;
  holder_.reset();
  draining_ = false;
}

bool DeviceScheduler::equal_natives() const {
  std::optional<Share> weight_of_all;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    const Client& t = clients_[i];
    if (t.entitlement.policy != Policy::native_burst_share ||
        t.entitlement.latency == LatencyClass::latency || t.entitlement.gang != Gang::none ||
        (weight_of_all && *weight_of_all != weight(t)))
      return false;
    weight_of_all = weight(t);
  }
  return weight_of_all.has_value();
}

Ns DeviceScheduler::in_flight_limit_of(unsigned client, std::span<const Observation> seen) const {
  const Client& t = clients_[client];
  Ns in_flight_limit = tuning_.in_flight_limit_alone;
  if (t.entitlement.policy == Policy::fixed_share) in_flight_limit = 2 * tuning_.in_flight_limit;
  if (present_.count() > 1)
    in_flight_limit = is_alone(client, seen) ? std::min(in_flight_limit, 4 * tuning_.in_flight_limit)
                                             : tuning_.in_flight_limit;
  if (t.entitlement.latency == LatencyClass::latency) return in_flight_limit;
  for (unsigned i = 0; i < max_clients; ++i)
    if (present_[i] && i != client && clients_[i].entitlement.latency == LatencyClass::latency)
      in_flight_limit = std::min(
          in_flight_limit,
          std::clamp(clients_[i].service / 20, tuning_.min_in_flight_limit, tuning_.in_flight_limit));
  invariant(in_flight_limit > 0, "a lease without work in flight never ends");
  return in_flight_limit;
}

void DeviceScheduler::set_leases(Ns now, std::span<const Observation> seen) {
  bool another_waits = false;
  unsigned open_gates = 0;
  contended_ = false;
  for (unsigned i = 0; i < max_clients; ++i) another_waits |= present_[i] && holder_ != i && seen[i].waiting;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    Client& t = clients_[i];
    if (all_open_) {
      t.lease = {true, tuning_.in_flight_limit_alone, 0, false, true};
    } else if (holder_ == i && !draining_) {
      const bool uncontended = present_.count() == 1 && t.entitlement.policy != Policy::fixed_share;
      Ns deadline = t.lease.open ? t.lease.deadline : 0;
      if (uncontended)
        deadline = 0;
      else if (deadline < now + tuning_.lease_margin / 2)
        deadline = now + tuning_.lease_margin;
      t.lease = {true, in_flight_limit_of(i, seen), deadline,
                 another_waits && t.entitlement.latency == LatencyClass::latency, uncontended};
    } else {
      t.lease = {};
    }
    t.wait_reason = WaitReason::none;
    if (seen[i].waiting && !t.lease.open)
      t.wait_reason =
          class_of(i, seen[i], false) == not_eligible ? WaitReason::throttled : WaitReason::contended;
    // The pauses of the lease holder cost a client nothing that has no work.
    contended_ |= t.wait_reason == WaitReason::contended && !t.is_doubtful;
    open_gates += t.lease.open;
    invariant(t.lease.deadline == 0 || t.lease.deadline > now, "a lease is not over when it is written");
  }
  invariant(all_open_ || open_gates == (holder_ && !draining_ ? 1 : 0));
  invariant(!all_open_ || open_gates == present_.count());
}

Ns DeviceScheduler::next_poll(Ns now, std::span<const Observation> seen) const {
  if (all_open_) return never;
  Ns next = never;
  const auto at_latest = [&](Ns t) { next = std::min(next, t); };
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i] || holder_ == i || !seen[i].waiting) continue;
    const Client& t = clients_[i];
    if (class_of(i, seen[i], false) != not_eligible || t.entitlement.gang == Gang::follows) continue;
    const Ns wait = t.bucket.until(threshold(t), t.entitlement.share);
    if (wait != never) at_latest(now + wait);
  }
  if (holder_) {
    const unsigned h = *holder_;
    const Client& t = clients_[h];
    const bool another_waits = pick_next(seen).has_value();
    if (draining_) {
      // No poll is needed until the estimated end. After that the poll interval grows.
      const Ns often = std::clamp((now - drain_began_) / 16, min_poll_interval, max_drain_poll_interval);
      at_latest(now + std::clamp(seen[h].left, often, max_drain_poll_interval));
    } else {
      if (t.lease.deadline != 0) at_latest(t.lease.deadline - tuning_.lease_margin / 2);
      if (t.entitlement.policy == Policy::fixed_share && t.entitlement.gang != Gang::follows) {
        const Ns lasts = t.bucket.lasts(t.entitlement.share);
        if (lasts != never) at_latest(now + lasts);
        if (!at_work(seen[h]))
          at_latest(std::max(idle_from(seen[h]) + tuning_.idle_gap(),
                             seen[h].busy > 0 ? now + pause_poll_interval : 0));
      }
      if (another_waits) {
        at_latest(quantum_began_ + quantum());
        // A client that just got its lease is about to launch.
        at_latest(at_work(seen[h]) || lease_began_ == now
                      ? now + idle_poll_interval(t.counters.charged - t.paused)
                      : std::max(idle_from(seen[h]) + tuning_.idle_gap(),
                                 seen[h].busy > 0 ? now + pause_poll_interval : 0));
      }
    }
  }
  return next == never ? never : std::max(next, now + min_poll_interval);
}

void DeviceScheduler::note(Transition::Kind kind, unsigned client) {
  invariant(client < max_clients);
  if (logged_ < log_.size()) log_[logged_++] = {kind, static_cast<uint8_t>(client)};
}

void DeviceScheduler::rebase() {
  for (unsigned c = 0; c < 3; ++c) {
    if (!clock_[c].large()) continue;
    for (Client& t : clients_) {
      t.fair[c].start = std::max<int64_t>(0, t.fair[c].start - clock_[c].base());
      t.fair[c].finish = std::max<int64_t>(0, t.fair[c].finish - clock_[c].base());
    }
    clock_[c].rebase();
    invariant(!clock_[c].large());
  }
}

Ns DeviceScheduler::step(Ns now, std::span<const Observation> seen) {
  invariant(seen.size() >= max_clients, "a poll has one observation per client");
  const Ns elapsed = last_ == 0 ? 0 : std::max<Ns>(0, now - last_);
  last_ = std::max(last_, now);
  logged_ = 0;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    Client& t = clients_[i];
    t.bucket.grow(elapsed, t.entitlement.share);
    if (t.lease.open && lease_used_ > 0 && !at_work(seen[i])) t.paused = t.counters.charged;
    if (t.wait_reason == WaitReason::contended) t.counters.waiting += elapsed;
    if (t.wait_reason == WaitReason::throttled) t.counters.throttled += elapsed;
  }
  if (holder_ && contended_) unused_ += elapsed;
  charge(elapsed, seen);
  contenders_ = 0;
  longest_ = 0;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    contenders_ += seen[i].waiting || seen[i].in_flight;
    longest_ = std::max(longest_, std::min(seen[i].longest, tuning_.max_drain));
  }
  for (unsigned i = 0; i < max_clients; ++i)
    if (present_[i]) clients_[i].bucket.limit(depth(clients_[i]));
  rebase();
  queue(seen);

  bool closed_now = false;
  all_open_ = equal_natives();
  if (all_open_) {
    if (holder_) end_lease();
  } else {
    if (holder_ && !draining_ && must_yield(now, seen)) {
      draining_ = true;
      drain_began_ = now;
      note(Transition::Kind::closed, *holder_);
      // The gate was open at the poll. The next poll, which is due at once, sees launches that passed since.
      closed_now = !seen[*holder_].in_flight;
    } else if (holder_ && draining_ && drained(now, seen)) {
      end_lease();
    }
    if (!holder_)
      if (const auto next = pick_next(seen)) open(*next, now);
  }
  upcoming_.reset();
  if (draining_)
    if (const auto next = pick_next(seen)) upcoming_ = next->client;
  invariant(!holder_ || present_[*holder_]);
  invariant(holder_ || !draining_);
  invariant(!upcoming_ || upcoming_ != holder_);
  invariant(contenders_ <= present_.count());
  set_leases(now, seen);
  return closed_now ? now : next_poll(now, seen);
}

}  // namespace carve::share
