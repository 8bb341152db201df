// The compute policy of each device: desired for the whole node, effective per device (core/setting.h), and
// stored in STATE/policy.json over restarts.
//
// The desired policy is the last one given: at each start on the command line (--policy, or the label below),
// else through the API, else fixed-share. A device keeps its effective policy while slices live on it, for
// any policy that they requested.
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

class Policies {
 public:
  // Returns the names of the slices that live on a device.
  using Holders = std::function<std::vector<std::string>(const Uuid&)>;

  struct Start {
    std::string path;  // Of the file that stores the policies.
    std::string boot_id;
    std::vector<Uuid> devices;
    std::optional<Policy> said;  // By the command line.
    // The policy of the slices of a device without a stored policy; no value: it has no slices.
    std::function<std::optional<Policy>(const Uuid&)> otherwise;
    // Whether all living slices can follow this policy. Asked after a boot, if it differs from an effective
    // one.
    std::function<bool(Policy)> may_follow;
    Holders holders;
  };
  struct Opened {
    std::string trouble;  // A sentence about a damaged file, or empty.
    bool booted = false;  // The desired policy became effective by a boot, also on devices with slices.
  };
  // Reads the stored policies. After a boot no process holds an earlier policy, so the desired one is
  // effective, unless a slice that outlives its processes cannot follow it.
  Opened open(const Start&);

  // Sets the desired policy. On failure the policy could not be stored, and nothing was changed.
  Outcome<void> want(Policy, const Holders&);

  // Called after a slice started or ended. Returns true if a device changed its policy. Returns false too if
  // the change could not be stored; the device then keeps its policy until the next call.
  bool settle(const Holders&);

  Policy desired() const { return desired_; }
  const Setting<Policy>& of(const Uuid&) const;

 private:
  Outcome<void> keep(Policy desired, const std::map<Uuid, Setting<Policy>>&) const;

  std::string path_, boot_id_;
  Policy desired_ = Policy::fixed_share;
  std::map<Uuid, Setting<Policy>> devices_;
};

}  // namespace carve::node
