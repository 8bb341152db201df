// A client's saved entitlement: a token bucket that is charged after use. It fills with the client's share of
// all time that passes, holds at most `depth`, and pays for the used time; its content may be negative. The
// unit is 1/10000 ns of the device (a nanosecond times a basis point), so the sums are exact.
#pragma once

#include "core/invariant.h"
#include "share/entitlement.h"

namespace carve::share {

class Bucket {
 public:
  // Adds the client's share of the time that passed. limit() removes what exceeds the depth, after pay() for
  // that time.
  void grow(Ns elapsed, Share share) { units_ += clipped(elapsed) * share.basis_points; }
  void pay(Ns used) {
    invariant(used >= 0, "nothing is paid back");
    units_ -= in_units(used);
  }
  void set(Ns tokens) { units_ = in_units(tokens); }
  void limit(Ns depth) { units_ = std::min(units_, in_units(depth)); }

  Ns tokens() const { return units_ / 10000; }  // Negative means debt.
  bool any() const { return units_ > 0; }

  // Returns the time until the bucket holds `tokens` if no time is used, or `never` without a share.
  Ns until(Ns tokens, Share share) const {
    invariant(tokens > 0);
    const int64_t missing = in_units(tokens) - units_;
    if (missing <= 0) return 0;
    return share.basis_points == 0 ? never : (missing + share.basis_points - 1) / share.basis_points;
  }
  // Returns the time until the bucket is empty while its client runs without pause, or `never` for a share of
  // 100 %.
  Ns lasts(Share share) const {
    if (units_ <= 0) return 0;
    const int64_t rate = 10000 - int64_t{share.basis_points};
    return rate <= 0 ? never : (units_ + rate - 1) / rate;
  }

 private:
  // A step of more than a day means a suspended machine, which earns no entitlement.
  static constexpr Ns clipped(Ns elapsed) { return std::clamp<Ns>(elapsed, 0, 86'400 * second); }
  static constexpr int64_t in_units(Ns ns) {
    return std::clamp<Ns>(ns, -86'400 * second, 86'400 * second) * 10000;
  }
  int64_t units_ = 0;
};

}  // namespace carve::share
