// The scheduler's clients, their charges, their leases, and the step.
#include "share/device_scheduler.h"

#include <utility>

#include "core/invariant.h"

namespace carve::share {
namespace {

// The overlap that is credited to a client before the driver's first count, and the maximum credit between
// two counts, which come every 250 ms.
constexpr Ns first_credit = 50 * ms, max_credit = 250 * ms;
// A thread that runs late on a busy machine may leave one lease unused.
constexpr unsigned free_unused_leases = 1;

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
  if (imminent_ == client) imminent_.reset();
  present_[client] = false;
  settle_mean_weight();
  clients_[client].lease = {};
  for (Client& other : clients_) other.waited_for[client] = 0;
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

void DeviceScheduler::set_wake_latency(Ns usual) {
  invariant(usual >= 0);
  wake_latency_ = usual;
  gate_lead_ = usual == 0 ? 0 : std::clamp(2 * usual, tuning_.min_gate_lead, tuning_.max_gate_lead);
}

// Returns the time that a client is charged for. This is the time of its work and, if it is the lease holder
// and others wait, also the pauses between its kernels, because the device is idle on its account.
Ns DeviceScheduler::occupied(unsigned client, Ns elapsed, const Observation& seen) {
  if (holder_ != client || !contended_) return seen.busy;
  if (lease_used_ + seen.busy <= 0 && !seen.in_flight) return seen.busy;
  // A pause may turn out to be the end of the work, so it is only charged when it has ended.
  const Ns before = seen.busy > 0 ? std::exchange(pause_, 0) : 0;
  if (!at_work(seen)) pause_ += std::clamp<Ns>(last_ - seen.idle_since, 0, elapsed);
  return std::max(seen.busy, before + elapsed - (at_work(seen) ? 0 : pause_));
}

// Charges the elapsed time to the clients that had work in flight. If several had work, each is charged a
// part of the time, so that the charges never exceed the elapsed time.
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
  // Without the driver's counts of each client's work, nothing contradicts a claim, so the claims apply.
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

void DeviceScheduler::support(unsigned client, bool worked, Ns at_most) {
  invariant(client < max_clients && present_[client]);
  invariant(at_most >= 0);
  Client& t = clients_[client];
  t.is_shown = worked;
  has_counts_ |= t.is_shown;
  const Ns claimed = t.counters.charged + t.counters.unsupported;
  const Ns since = claimed - std::exchange(t.claimed, claimed);
  t.is_doubtful =
      has_counts_ && !t.is_shown && (since > first_credit + at_most || t.unused_leases > free_unused_leases);
  t.credit = std::min(max_credit, t.credit + std::max<Ns>(0, at_most - std::exchange(t.own, 0)));
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
  lease_used_ = lease_worked_ = pause_ = unused_ = 0;
  draining_ = false;
  // The client keeps the tag that it got when it arrived at the gate.
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
  // A running median, which each new value moves by 1/16 of the median.
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

Ns DeviceScheduler::in_flight_limit_of(unsigned client, std::span<const Observation> seen) const {
  const Client& t = clients_[client];
  Ns in_flight_limit = tuning_.in_flight_limit_alone;
  if (t.entitlement.policy == Policy::fixed_share) in_flight_limit = 2 * tuning_.in_flight_limit;
  if (present_.count() > 1)
    in_flight_limit = is_alone(client, seen) ? std::min(in_flight_limit, 4 * tuning_.in_flight_limit)
                                             : std::max(tuning_.in_flight_limit, quantum() * 3 / 10);
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
      t.lease = {.draining = holder_ == i, .imminent = imminent_ == i};
    }
    t.wait_reason = WaitReason::none;
    if (seen[i].waiting && !t.lease.open)
      t.wait_reason =
          class_of(i, seen[i], false) == not_eligible ? WaitReason::throttled : WaitReason::contended;
    // The lease holder's pauses cost nothing to a client that has no work.
    contended_ |= t.wait_reason == WaitReason::contended && !t.is_doubtful;
    open_gates += t.lease.open;
    invariant(t.lease.deadline == 0 || t.lease.deadline > now, "a lease is not over when it is written");
  }
  invariant(all_open_ || open_gates == (holder_ && !draining_ ? 1 : 0));
  invariant(!all_open_ || open_gates == present_.count());
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
    if (t.wait_reason == WaitReason::contended) {
      t.counters.waiting += elapsed;
      if (holder_ && holder_ != i) t.waited_for[*holder_] += elapsed;
    }
    if (t.wait_reason == WaitReason::throttled) t.counters.throttled += elapsed;
  }
  if (holder_ && contended_) unused_ += elapsed;
  if (holder_) lease_worked_ += std::clamp<Ns>(seen[*holder_].busy, 0, elapsed);
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
  queue(now, seen);

  bool closed_now = false;
  all_open_ = equal_natives();
  if (all_open_) {
    if (holder_) end_lease();
  } else {
    if (holder_ && !draining_ && must_yield(now, seen)) {
      draining_ = true;
      clients_[*holder_].is_away = !at_work(seen[*holder_]);
      drain_began_ = now;
      drain_ends_ = never;
      drain_expected_ = now + seen[*holder_].left;
      note(Transition::Kind::closed, *holder_);
      // The gate was open at the poll. The next poll, which is due immediately, sees launches that passed
      // since.
      closed_now = !seen[*holder_].in_flight;
    } else if (holder_ && draining_ && drained(now, seen)) {
      end_lease();
    }
    if (!holder_)
      if (const auto next = pick_next(seen)) open(*next, now);
  }
  if (draining_) drain_ends_ = std::min(drain_ends_, now + seen[*holder_].left);
  foresee(now, seen);
  invariant(!holder_ || present_[*holder_]);
  invariant(holder_ || !draining_);
  invariant(!upcoming_ || upcoming_ != holder_);
  invariant(!imminent_ || imminent_ != holder_);
  invariant(contenders_ <= present_.count());
  set_leases(now, seen);
  return closed_now ? now : next_poll(now, seen);
}

}  // namespace carve::share
