// Start-time fair queueing: the client that has used the least in relation to its weight is next. A client
// that returns starts at the tags of the others (`now`), so it is not owed time that it did not want. A tag
// is ns of use divided by the weight. With a share of one basis point, a second of use adds 10^13, so all
// tags are reduced together long before they overflow.
#pragma once

#include "core/invariant.h"
#include "share/entitlement.h"

namespace carve::share {

struct FairTag {
  int64_t start = 0;
  int64_t finish = 0;
};

class FairClock {
 public:
  // Marks that the client wants the device from now on.
  void arrive(FairTag& tag) const { tag.start = tag.finish = std::max(now_, tag.finish); }
  void begin(const FairTag& tag) { now_ = std::max(now_, tag.start); }
  // Adds `used` ns of service.
  static void serve(FairTag& tag, Ns used, Share weight) {
    invariant(used >= 0);
    tag.finish += used * 10000 / std::max<int64_t>(1, weight.basis_points);
    invariant(tag.start <= tag.finish);
  }

  // Returns whether all tags should be reduced by `base()` now.
  bool large() const { return now_ > int64_t{1} << 60; }
  int64_t base() const { return now_; }
  void rebase() { now_ = 0; }

 private:
  int64_t now_ = 0;
};

}  // namespace carve::share
