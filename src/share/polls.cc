// The scheduler's polls: whether the work of an ended lease has drained, which client is woken before its
// gate opens, and when the next poll is due.
#include "share/device_scheduler.h"

#include <utility>

#include "core/invariant.h"

namespace carve::share {
namespace {

// The shortest interval between two polls, because a sleep is not more precise.
constexpr Ns min_poll_interval = 20 * us;
// While work runs and another client waits, the poll interval grows with the uninterrupted run time, so that
// little time is lost at the end of the work: max(run / 64, 500 us).
constexpr Ns min_idle_poll_interval = 500 * us;
constexpr Ns idle_poll_interval(Ns without_pause) {
  return std::max(without_pause / 64, min_idle_poll_interval);
}
constexpr Ns min_drain_poll_interval = 50 * us, max_drain_poll_interval = 1 * ms;
// A drain that ends earlier than expected by more than `sure_end` is a surprise. After a surprise, the
// client's next 17 drains are polled early, which is until `max_surprise` has decayed to `sure_end`.
constexpr Ns sure_end = 100 * us, max_surprise = 1 * ms;

}  // namespace

bool DeviceScheduler::drained(Ns now, std::span<const Observation> all) {
  invariant(holder_.has_value() && draining_);
  const Observation& seen = all[*holder_];
  Client& t = clients_[*holder_];
  const Ns took = now - drain_began_;
  if (!seen.in_flight) {
    t.drain = std::max(took, t.drain - t.drain / 8);
    t.surprise = now < drain_expected_ - sure_end ? max_surprise : t.surprise - t.surprise / 8;
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

// Returns the time until a client that waits at its gate has enough tokens, or `never` if it does not wait
// for tokens.
Ns DeviceScheduler::until_tokens(unsigned client, const Observation& seen) const {
  if (!present_[client] || holder_ == client || !seen.waiting) return never;
  const Client& t = clients_[client];
  if (class_of(client, seen, false) != not_eligible || t.entitlement.gang == Gang::follows) return never;
  return t.bucket.until(threshold(t), t.entitlement.share);
}

// Finds the client whose gate opens next, and whether that is soon.
void DeviceScheduler::foresee(Ns now, std::span<const Observation> seen) {
  const auto before = std::exchange(imminent_, std::nullopt);
  upcoming_.reset();
  if (draining_) {
    if (const auto next = pick_next(seen)) upcoming_ = next->client;
    // The end of a drain is only an estimate. A client that was woken too early is not sent back to sleep.
    if (gate_lead_ != 0 && upcoming_ && (before == upcoming_ || now >= drain_ends_ - gate_lead_))
      imminent_ = upcoming_;
  } else if (!holder_ && gate_lead_ != 0) {
    Ns soonest = gate_lead_;
    for (unsigned i = 0; i < max_clients; ++i)
      if (const Ns wait = until_tokens(i, seen[i]); wait <= soonest) soonest = wait, imminent_ = i;
  }
}

Ns DeviceScheduler::next_poll(Ns now, std::span<const Observation> seen) const {
  if (all_open_) return never;
  Ns next = never;
  const auto at_latest = [&](Ns t) { next = std::min(next, t); };
  for (unsigned i = 0; i < max_clients; ++i) {
    const Ns wait = until_tokens(i, seen[i]);
    if (wait == never) continue;
    at_latest(now + wait);
    if (!holder_ && wait > gate_lead_) at_latest(now + wait - gate_lead_);
  }
  if (holder_) {
    const unsigned h = *holder_;
    const Client& t = clients_[h];
    const auto candidate = pick_next(seen);
    if (draining_) {
      // The time from the end of the work to the next poll is charged, and some programs' work ends earlier
      // than estimated. `left` may stay the same until the last kernel ends, so there is also a poll at the
      // earliest estimated end. After it the poll interval grows.
      const Ns took = now - drain_began_;
      const Ns often = std::clamp(took / 16, min_poll_interval, max_drain_poll_interval);
      const Ns early = std::min(seen[h].left / 2, std::max(took, min_drain_poll_interval));
      const bool may_end_early = t.surprise > sure_end && early > often;
      at_latest(now + std::clamp(may_end_early ? early : seen[h].left, often, max_drain_poll_interval));
      if (now < drain_ends_) at_latest(drain_ends_);
      if (now < drain_ends_ - gate_lead_) at_latest(drain_ends_ - gate_lead_);
    } else {
      if (t.lease.deadline != 0) at_latest(t.lease.deadline - tuning_.lease_margin / 2);
      if (t.entitlement.policy == Policy::fixed_share && t.entitlement.gang != Gang::follows) {
        const Ns lasts = t.bucket.lasts(t.entitlement.share);
        if (lasts != never) at_latest(now + lasts);
        if (!at_work(seen[h]))
          at_latest(std::max(idle_from(seen[h]) + pause_limit(now, seen[h], candidate),
                             seen[h].busy > 0 ? now + pause_poll_interval : 0));
      }
      if (candidate) {
        at_latest(quantum_began_ + quantum());
        // A client that has just got its lease is about to launch.
        at_latest(at_work(seen[h]) || lease_began_ == now
                      ? now + idle_poll_interval(t.counters.charged - t.paused)
                      : std::max(idle_from(seen[h]) + pause_limit(now, seen[h], candidate),
                                 seen[h].busy > 0 ? now + pause_poll_interval : 0));
      }
    }
  }
  return next == never ? never : std::max(next, now + min_poll_interval);
}

}  // namespace carve::share
