// What a client has saved up of its share: a post-paid token bucket. It fills with the share of all time that
// passes, holds at most `depth`, and pays for what was used, if need be with a debt. The unit is a
// nanosecond of the device in basis points of it (1/10000 ns), so the sums are exact.
#pragma once

#include "share/entitlement.h"

namespace carve::share {

class Bucket {
 public:
  // Time passes. What it fills beyond its depth is taken off by limit(), after what was used in that time.
  void grow(Ns elapsed, Share share) { units_ += clipped(elapsed) * share.basis_points; }
  void pay(Ns used) { units_ -= in_units(used); }
  void set(Ns tokens) { units_ = in_units(tokens); }
  void limit(Ns depth) { units_ = std::min(units_, in_units(depth)); }

  Ns tokens() const { return units_ / 10000; }  // Negative: a debt.
  bool any() const { return units_ > 0; }

  // How long until it holds `tokens` if nothing is used; `never` without a share.
  Ns until(Ns tokens, Share share) const {
    const int64_t missing = in_units(tokens) - units_;
    if (missing <= 0) return 0;
    return share.basis_points == 0 ? never : (missing + share.basis_points - 1) / share.basis_points;
  }
  // How long it lasts while its client runs without pause; `never` for the whole device.
  Ns lasts(Share share) const {
    if (units_ <= 0) return 0;
    const int64_t rate = 10000 - int64_t{share.basis_points};
    return rate <= 0 ? never : (units_ + rate - 1) / rate;
  }

 private:
  // A step of more than a day would be a suspended machine: no entitlement grows out of that.
  static constexpr Ns clipped(Ns elapsed) { return std::clamp<Ns>(elapsed, 0, 86'400 * second); }
  static constexpr int64_t in_units(Ns ns) {
    return std::clamp<Ns>(ns, -86'400 * second, 86'400 * second) * 10000;
  }
  int64_t units_ = 0;
};

}  // namespace carve::share
