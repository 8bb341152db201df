// Start-time fair queueing: who had least for its weight is next. A client that comes back starts where the
// others are (`now`), so time that it did not want is not owed to it. Tags are ns of use over weight; a share
// of one basis point makes a second of use 10^13, so tags are taken back to 0 together long before they wrap.
#pragma once

#include "share/entitlement.h"

namespace carve::share {

struct FairTag {
  int64_t start = 0;
  int64_t finish = 0;
};

class FairClock {
 public:
  // The client wants to be served from now on.
  void arrive(FairTag& tag) const { tag.start = tag.finish = std::max(now_, tag.finish); }
  void begin(const FairTag& tag) { now_ = std::max(now_, tag.start); }
  // It was served for `used` more.
  static void serve(FairTag& tag, Ns used, Share weight) {
    tag.finish += used * 10000 / std::max<int64_t>(1, weight.basis_points);
  }

  // Whether the tags should be taken down by `base()` now.
  bool large() const { return now_ > int64_t{1} << 60; }
  int64_t base() const { return now_; }
  void rebase() { now_ = 0; }

 private:
  int64_t now_ = 0;
};

}  // namespace carve::share
