// Which compute policy each device of this machine follows: wanted of the whole machine, effective on each
// device (core/setting.h), and kept in STATE/policy.json over restarts.
//
// What is wanted is the last thing that somebody said: on the command line (--policy, or the label below), at
// each start; else through the API; else fixed-share. A device's slices hold its effective policy: all that
// live on it, whatever they have asked for.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/failure.h"
#include "core/setting.h"
#include "core/slice.h"

namespace carve::node {

// The label by which a node pool's policy reaches its machines.
inline constexpr const char* policy_label = "vke.volcengine.com/mgpu-compute-policy";

class Policies {
 public:
  // Who lives on a device, as names.
  using Holders = std::function<std::vector<std::string>(const Uuid&)>;

  // Reads what is kept. A device that nothing is kept of follows `otherwise(device)`: what its slices live
  // under already, or what is wanted. `trouble`, where not empty, is a sentence about a damaged file.
  void open(std::string path, std::span<const Uuid> devices, std::optional<Policy> said,
            const std::function<std::optional<Policy>(const Uuid&)>& otherwise, const Holders&,
            std::string& trouble);

  // Failure: it could not be kept, and nothing was changed.
  Outcome<void> want(Policy, const Holders&);

  // A slice has ended or come. True where a device changed over; false also where that could not be kept: it
  // stays as it was, and the next call tries again.
  bool settle(const Holders&);

  Policy desired() const { return desired_; }
  const Setting<Policy>& of(const Uuid&) const;

 private:
  Outcome<void> keep(Policy desired, const std::map<Uuid, Setting<Policy>>&) const;

  std::string path_;
  Policy desired_ = Policy::fixed_share;
  std::map<Uuid, Setting<Policy>> devices_;
};

}  // namespace carve::node
