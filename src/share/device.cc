#include "share/device.h"

#include <utility>

namespace carve::share {
namespace {

// Nearer than this nobody can look: a sleep is no more exact.
constexpr Ns least_look = 20 * us;
// While work runs and somebody waits, so much passes between two looks at whether it still runs: the more,
// the more it did without a pause, so that little of it is lost at the end.
constexpr Ns idle_look_least = 500 * us;
constexpr Ns idle_look(Ns without_pause) { return std::max(without_pause / 64, idle_look_least); }
// A holder that pauses between kernels is not looked at in each pause.
constexpr Ns pause_look = 500 * us;
constexpr Ns drain_look_most = 1 * ms;
// Where a fixed-share client must pause, it pauses for so long at least: each time two wakes, the arbiter's
// and its own, and the end of its work that is seen late, cost some 0.1 ms that it is charged for.
constexpr Ns least_pause = 2 * ms;

// A thread that has yet to wake up and launch the next kernel does not leave the device to others.
bool at_work(const Observation& seen) { return seen.in_flight || seen.presses; }

}  // namespace

std::optional<unsigned> Device::join(const Terms& terms, Ns now) {
  for (unsigned i = 0; i < max_clients; ++i) {
    if (present_[i]) continue;
    present_[i] = true;
    clients_[i] = {};
    change(i, terms, now);
    // A newcomer must not wait for its first token.
    clients_[i].bucket.set(depth(clients_[i]) / 2);
    return i;
  }
  return std::nullopt;
}

void Device::leave(unsigned place, Ns now) {
  if (!present_[place]) return;
  if (holder_ == place) {
    note(Transition::Kind::drained, place);
    end_lease();
  }
  if (last_holder_ == place) last_holder_.reset();
  present_[place] = false;
  clients_[place].gate = {};
  last_ = std::max(last_, now);
}

void Device::change(unsigned place, const Terms& terms, Ns now) {
  Client& t = clients_[place];
  t.terms = terms;
  t.bucket.limit(depth(t));
  last_ = std::max(last_, now);
}

Share Device::weight(const Client& t) const {
  return t.terms.share.basis_points != 0 ? t.terms.share : best_effort_weight;
}

Ns Device::quantum() const {
  return std::max(2 * ms, std::min(tuning_.quantum(), tuning_.round / std::max(1u, crowd_)));
}

Ns Device::depth(const Client& t) const {
  // While somebody's long kernel runs, the others go on saving up.
  return std::max(t.terms.latency == LatencyClass::latency ? tuning_.latency_depth : 0,
                  tuning_.depth() + longest_);
}

// What a fixed-share client must have saved up before it may start again, so that leases have their length: a
// quantum. It runs for threshold / (1 - share).
Ns Device::threshold(const Client& t) const {
  const int64_t share = std::min<int64_t>(weight(t).basis_points, 10000);
  const Ns length = crowd_ <= 1 ? tuning_.chunk : quantum();
  return std::min(std::max({length * (10000 - share) / 10000, least_pause * share / 10000, Ns{1}}),
                  depth(t) / 2);
}

Device::Class Device::class_of(unsigned place, const Observation& seen, bool holds) const {
  const Client& t = clients_[place];
  const bool has_share = t.terms.share.basis_points != 0;
  const bool follows = t.terms.gang == Gang::follows;
  if (follows && !seen.called) return not_eligible;
  if ((follows || t.terms.latency == LatencyClass::latency) && has_share && t.bucket.any()) return urgent;
  if (!has_share) return burst;
  switch (t.terms.policy) {
    case Policy::fixed_share: {
      const bool enough = holds ? t.bucket.any() : t.bucket.until(threshold(t), t.terms.share) == 0;
      return enough ? entitled : not_eligible;
    }
    case Policy::guaranteed_burst_share: return t.bucket.any() ? entitled : burst;
    case Policy::native_burst_share: return burst;
  }
  return burst;
}

bool Device::lone(unsigned place, std::span<const Observation> seen) const {
  for (unsigned i = 0; i < max_clients; ++i)
    if (present_[i] && i != place && (seen[i].waiting || seen[i].in_flight)) return false;
  return true;
}

// What the holder is charged for: its work; and, while others wait for it, also the pauses between its
// kernels, since the device stands still for its sake.
Ns Device::occupied(unsigned place, Ns elapsed, const Observation& seen) {
  if (holder_ != place || !held_up_ || lease_used_ + seen.busy <= 0) return seen.busy;
  // A pause that may turn out to be the end is charged when it has ended.
  const Ns before = seen.busy > 0 ? std::exchange(pause_, 0) : 0;
  if (!at_work(seen)) pause_ += std::clamp<Ns>(last_ - seen.idle_since, 0, elapsed);
  return std::max(seen.busy, before + elapsed - (at_work(seen) ? 0 : pause_));
}

// Whoever had work in flight is charged for the time; if several had, each its part, so that the charges are
// never more than the time that passed.
void Device::charge(Ns elapsed, std::span<const Observation> seen) {
  if (elapsed <= 0) return;
  const Ns most = elapsed + pause_;
  std::array<Ns, max_clients> had{};
  Ns total = 0;
  unsigned busy = 0;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    had[i] = std::clamp<Ns>(occupied(i, elapsed, seen[i]), 0, most);
    total += had[i];
    busy += had[i] > 0;
  }
  const Ns all = std::min(total, busy > 1 ? elapsed : most);
  Ns charged = 0, sum = 0;
  for (unsigned i = 0; i < max_clients && sum < total; ++i) {
    if (had[i] == 0) continue;
    sum += had[i];
    // The part up to here less the part before: no nanosecond is lost to rounding.
    const auto up_to = static_cast<Ns>(static_cast<__int128>(all) * sum / total);
    pay(i, up_to - charged, busy > 1);
    charged = up_to;
  }
  busy_ += all;
}

void Device::pay(unsigned place, Ns used, bool overlapped) {
  Client& t = clients_[place];
  const bool holds = holder_ == place;
  const Class paid_as = holds ? granted_ : t.terms.policy == Policy::fixed_share ? entitled : burst;
  t.account.charged += used;
  if (overlapped) t.account.overlapped += used;
  if (paid_as == burst) {
    // Time that nobody else was entitled to costs no tokens, and earns none.
    t.account.burst += used;
    t.bucket.pay(used * std::min<int64_t>(t.terms.share.basis_points, 10000) / 10000);
  } else {
    t.bucket.pay(used);
  }
  if (paid_as != not_eligible) FairClock::serve(t.fair[paid_as], used, weight(t));
  if (holds) lease_used_ += used;
}

void Device::queue(std::span<const Observation> seen) {
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

// The best of those that stand at a closed gate.
std::optional<Device::Rival> Device::pick(std::span<const Observation> seen) const {
  std::optional<Rival> best;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i] || holder_ == i || !seen[i].waiting) continue;
    const Class c = class_of(i, seen[i], false);
    if (c == not_eligible) continue;
    if (!best || c < best->cls ||
        (c == best->cls && clients_[i].fair[c].start < clients_[best->place].fair[c].start))
      best = {i, c};
  }
  return best;
}

// Whether the holder's gate closes now. A holder that goes on begins a new quantum where it had used up one.
bool Device::hands_over(Ns now, std::span<const Observation> seen) {
  const unsigned h = *holder_;
  Client& t = clients_[h];
  const Class cls = class_of(h, seen[h], true);
  if (cls == not_eligible) return true;
  const auto rival = pick(seen);
  const bool idle = !at_work(seen[h]) && now >= idle_from(seen[h]) + tuning_.idle_gap();
  // Alone, an idle burst client keeps its gate. One whose share is a cap must be seen when it comes back.
  if (idle && (rival || t.terms.policy == Policy::fixed_share)) return true;
  if (!rival) return false;
  if (rival->cls == urgent && granted_ != urgent) return true;
  if (now - quantum_began_ < quantum()) return false;
  if (rival->cls < cls) return true;
  if (rival->cls == cls && clients_[rival->place].fair[cls].start <= t.fair[cls].finish) return true;
  begin_quantum(cls, now);
  return false;
}

// Since when the holder leaves the device idle. A thread that was just let in has to wake up first.
Ns Device::idle_from(const Observation& seen) const {
  return lease_used_ > 0 ? seen.idle_since : std::max(seen.idle_since, lease_began_ + tuning_.wake);
}

bool Device::drained(Ns now, std::span<const Observation> all) {
  const Observation& seen = all[*holder_];
  Client& t = clients_[*holder_];
  const Ns took = now - drain_began_;
  if (!seen.in_flight) {
    t.drain = std::max(took, t.drain - t.drain / 8);
    note(Transition::Kind::drained, *holder_);
    return true;
  }
  const auto next = pick(all);
  const bool hurry = next && next->cls == urgent;
  const Ns patience = hurry ? tuning_.most_drain_urgent : tuning_.most_drain;
  const Ns most = std::clamp(2 * std::max(seen.longest, t.drain), tuning_.least_drain, patience);
  if (took < most) return false;
  // What it says of its kernels may be wrong. Twice as long the next time; and if that was the longest there
  // is, it may wait for a launch to come and never drain.
  if (!hurry) t.drain = most < patience ? most : 0;
  ++t.account.overruns;
  note(Transition::Kind::overran, *holder_);
  return true;
}

void Device::begin_quantum(Class cls, Ns now) {
  Client& t = clients_[*holder_];
  granted_ = cls;
  quantum_began_ = now;
  clock_[cls].arrive(t.fair[cls]);
  clock_[cls].begin(t.fair[cls]);
}

void Device::open(const Rival& next, Ns now) {
  Client& t = clients_[next.place];
  holder_ = next.place;
  lease_used_ = pause_ = 0;
  draining_ = false;
  // It arrived when it came to the gate; its tag says so, and must not be moved on.
  granted_ = next.cls;
  lease_began_ = quantum_began_ = now;
  clock_[next.cls].begin(t.fair[next.cls]);
  ++t.account.leases;
  if (last_holder_ != holder_) ++switches_;
  last_holder_ = holder_;
  note(Transition::Kind::opened, next.place);
}

void Device::end_lease() {
  Client& t = clients_[*holder_];
  // A step towards each new value by a part of itself: a running median.
  if (t.terms.latency == LatencyClass::latency && lease_used_ > 0) {
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

bool Device::equal_natives() const {
  std::optional<Share> weight_of_all;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    const Client& t = clients_[i];
    if (t.terms.policy != Policy::native_burst_share || t.terms.latency == LatencyClass::latency ||
        t.terms.gang != Gang::none || (weight_of_all && *weight_of_all != weight(t)))
      return false;
    weight_of_all = weight(t);
  }
  return weight_of_all.has_value();
}

Ns Device::bound_of(unsigned place, std::span<const Observation> seen) const {
  const Client& t = clients_[place];
  Ns bound = tuning_.bound_alone;
  if (t.terms.policy == Policy::fixed_share) bound = 2 * tuning_.bound;
  if (present_.count() > 1) bound = lone(place, seen) ? std::min(bound, 4 * tuning_.bound) : tuning_.bound;
  if (t.terms.latency == LatencyClass::latency) return bound;
  for (unsigned i = 0; i < max_clients; ++i)
    if (present_[i] && i != place && clients_[i].terms.latency == LatencyClass::latency)
      bound = std::min(bound, std::clamp(clients_[i].service / 20, tuning_.least_bound, tuning_.bound));
  return bound;
}

void Device::set_gates(Ns now, std::span<const Observation> seen) {
  bool somebody_waits = false;
  held_up_ = false;
  for (unsigned i = 0; i < max_clients; ++i) somebody_waits |= present_[i] && holder_ != i && seen[i].waiting;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    Client& t = clients_[i];
    if (all_open_) {
      t.gate = {true, tuning_.bound_alone, 0, false, true};
    } else if (holder_ == i && !draining_) {
      const bool needs_nobody = present_.count() == 1 && t.terms.policy != Policy::fixed_share;
      Ns deadline = t.gate.open ? t.gate.deadline : 0;
      if (needs_nobody)
        deadline = 0;
      else if (deadline < now + tuning_.lease_margin / 2)
        deadline = now + tuning_.lease_margin;
      t.gate = {true, bound_of(i, seen), deadline, somebody_waits && t.terms.latency == LatencyClass::latency,
                needs_nobody};
    } else {
      t.gate = {};
    }
    t.standing = Standing::absent;
    if (seen[i].waiting && !t.gate.open)
      t.standing = class_of(i, seen[i], false) == not_eligible ? Standing::held_back : Standing::held_up;
    held_up_ |= t.standing == Standing::held_up;
  }
}

Ns Device::next_look(Ns now, std::span<const Observation> seen) const {
  if (all_open_) return never;
  Ns next = never;
  const auto at_latest = [&](Ns t) { next = std::min(next, t); };
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i] || holder_ == i || !seen[i].waiting) continue;
    const Client& t = clients_[i];
    if (class_of(i, seen[i], false) != not_eligible || t.terms.gang == Gang::follows) continue;
    const Ns wait = t.bucket.until(threshold(t), t.terms.share);
    if (wait != never) at_latest(now + wait);
  }
  if (holder_) {
    const unsigned h = *holder_;
    const Client& t = clients_[h];
    const bool somebody_waits = pick(seen).has_value();
    if (draining_) {
      // Until it should have ended, no look is needed; from then on often, but ever less so.
      const Ns often = std::clamp((now - drain_began_) / 16, least_look, drain_look_most);
      at_latest(now + std::clamp(seen[h].left, often, drain_look_most));
    } else {
      if (t.gate.deadline != 0) at_latest(t.gate.deadline - tuning_.lease_margin / 2);
      if (t.terms.policy == Policy::fixed_share && t.terms.gang != Gang::follows) {
        const Ns lasts = t.bucket.lasts(t.terms.share);
        if (lasts != never) at_latest(now + lasts);
        if (!at_work(seen[h]))
          at_latest(
              std::max(idle_from(seen[h]) + tuning_.idle_gap(), seen[h].busy > 0 ? now + pause_look : 0));
      }
      if (somebody_waits) {
        at_latest(quantum_began_ + quantum());
        // Who was just let in came to launch.
        at_latest(
            at_work(seen[h]) || lease_began_ == now
                ? now + idle_look(t.account.charged - t.paused)
                : std::max(idle_from(seen[h]) + tuning_.idle_gap(), seen[h].busy > 0 ? now + pause_look : 0));
      }
    }
  }
  return next == never ? never : std::max(next, now + least_look);
}

void Device::note(Transition::Kind kind, unsigned place) {
  if (logged_ < log_.size()) log_[logged_++] = {kind, static_cast<uint8_t>(place)};
}

void Device::rebase() {
  for (unsigned c = 0; c < 3; ++c) {
    if (!clock_[c].large()) continue;
    for (Client& t : clients_) {
      t.fair[c].start = std::max<int64_t>(0, t.fair[c].start - clock_[c].base());
      t.fair[c].finish = std::max<int64_t>(0, t.fair[c].finish - clock_[c].base());
    }
    clock_[c].rebase();
  }
}

Ns Device::step(Ns now, std::span<const Observation> seen) {
  const Ns elapsed = last_ == 0 ? 0 : std::max<Ns>(0, now - last_);
  last_ = std::max(last_, now);
  logged_ = 0;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    Client& t = clients_[i];
    t.bucket.grow(elapsed, t.terms.share);
    if (t.gate.open && lease_used_ > 0 && !at_work(seen[i])) t.paused = t.account.charged;
    if (t.standing == Standing::held_up) t.account.waiting += elapsed;
    if (t.standing == Standing::held_back) t.account.throttled += elapsed;
  }
  charge(elapsed, seen);
  crowd_ = 0;
  longest_ = 0;
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    crowd_ += seen[i].waiting || seen[i].in_flight;
    longest_ = std::max(longest_, std::min(seen[i].longest, tuning_.most_drain));
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
    if (holder_ && !draining_ && hands_over(now, seen)) {
      draining_ = true;
      drain_began_ = now;
      note(Transition::Kind::closed, *holder_);
      // The gate was open when we looked: what slipped in since is seen by the next look, at once.
      closed_now = !seen[*holder_].in_flight;
    } else if (holder_ && draining_ && drained(now, seen)) {
      end_lease();
    }
    if (!holder_)
      if (const auto next = pick(seen)) open(*next, now);
  }
  upcoming_.reset();
  if (draining_)
    if (const auto next = pick(seen)) upcoming_ = next->place;
  set_gates(now, seen);
  return closed_now ? now : next_look(now, seen);
}

}  // namespace carve::share
