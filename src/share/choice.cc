// The scheduler's decisions: which client has a right to the device, which client is next, and when the lease
// holder yields.
#include "share/device_scheduler.h"

#include "core/invariant.h"

namespace carve::share {
namespace {

// The shortest pause of a fixed-share client. For each pause the client is charged about 0.1 ms: the wake-ups
// of the arbiter and of the client, and the delay until the end of its work is observed.
constexpr Ns min_pause = 2 * ms;

}  // namespace

Ns DeviceScheduler::quantum() const {
  return std::max(2 * ms, std::min(tuning_.quantum(), tuning_.round / std::max(1u, contenders_)));
}

// A thread that waits for each of its kernels launches the next one after it wakes up, and must not lose its
// lease in between.
Ns DeviceScheduler::idle_gap() const { return std::max(tuning_.idle_gap(), 3 * wake_latency_); }

Ns DeviceScheduler::depth(const Client& t) const {
  // While another client's long kernel runs, the client keeps saving tokens.
  return std::max(t.entitlement.latency == LatencyClass::latency ? tuning_.latency_depth : 0,
                  tuning_.depth() + longest_);
}

// Returns the tokens that a fixed-share client must have before it may start again, so that its lease lasts a
// quantum. The client then runs for threshold / (1 - share).
Ns DeviceScheduler::threshold(const Client& t) const {
  const int64_t share = std::min<int64_t>(weight(t).basis_points, 10000);
  invariant(share > 0);
  Ns enough = quantum() * (10000 - share) / 10000;
  if (contenders_ <= 1)
    enough = std::min(enough, std::max(tuning_.max_pause_alone * share / 10000,
                                       tuning_.min_quantum_alone * (10000 - share) / 10000));
  enough = std::min(std::max({enough, min_pause * share / 10000, Ns{1}}), depth(t) / 2);
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

void DeviceScheduler::queue(Ns now, std::span<const Observation> seen) {
  for (unsigned i = 0; i < max_clients; ++i) {
    if (!present_[i]) continue;
    Client& t = clients_[i];
    if (t.is_away && seen[i].waiting) {
      t.is_away = false;
      t.pauses_long = now - seen[i].idle_since > tuning_.max_held_pause + pause_poll_interval;
    }
    if (holder_ == i || !seen[i].waiting) {
      t.queued = false;
    } else if (!t.queued) {
      t.queued = true;
      for (unsigned c = 0; c < 3; ++c) clock_[c].arrive(t.fair[c]);
    }
  }
}

// Returns the client that is next among those that wait at a closed gate.
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

// Returns how long the lease holder may leave the device idle while another client waits. Burst clients have
// no right to the time of a holder that has tokens and pays for its pauses.
Ns DeviceScheduler::pause_limit(Ns now, const Observation& held, const std::optional<Candidate>& next) const {
  invariant(holder_.has_value());
  if (!next || next->cls != burst || class_of(*holder_, held, true) != entitled ||
      clients_[*holder_].pauses_long)
    return idle_gap();
  const Ns pause = now - idle_from(held);
  const Ns rested = std::max<Ns>(0, now - lease_began_ - lease_worked_ - pause);
  return std::max(idle_gap(),
                  std::min(tuning_.max_held_pause, Tuning::rest_for_work * lease_worked_ - rested));
}

// Returns the time since which the lease holder has left the device idle. A thread that just got the lease
// must wake up first. Until the holder has paid for work under this lease, `idle_since` is only a claim, and
// a client that always reported `now` would keep the device.
Ns DeviceScheduler::idle_from(const Observation& seen) const {
  return lease_used_ > 0 ? seen.idle_since : lease_began_ + std::max(tuning_.wake, 4 * wake_latency_);
}

// Returns whether the lease holder's gate closes now. A holder that has used up its quantum and continues
// begins a new one.
bool DeviceScheduler::must_yield(Ns now, std::span<const Observation> seen) {
  invariant(holder_.has_value() && !draining_);
  const unsigned h = *holder_;
  Client& t = clients_[h];
  const Class cls = class_of(h, seen[h], true);
  if (cls == not_eligible) return true;
  const auto candidate = pick_next(seen);
  const bool idle = !at_work(seen[h]) && now >= idle_from(seen[h]) + pause_limit(now, seen[h], candidate);
  // The gate of an idle burst client stays open until another client needs the device. A fixed-share client
  // must arrive at a closed gate, so that the arbiter notices its return.
  if (idle && (candidate || t.entitlement.policy == Policy::fixed_share)) return true;
  if (!candidate) return false;
  if (candidate->cls == urgent && granted_ != urgent) return true;
  if (now - quantum_began_ < quantum()) return false;
  if (candidate->cls < cls) return true;
  if (candidate->cls == cls && clients_[candidate->client].fair[cls].start <= t.fair[cls].finish) return true;
  begin_quantum(cls, now);
  return false;
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

}  // namespace carve::share
