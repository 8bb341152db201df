// The compute policy of each device: desired for the whole node, effective per device (core/setting.h), and
// stored in STATE/policy.json across restarts.
//
// The desired policy is set by the API, or at the start by --policy or the label below; the last setting
// applies. The default is fixed-share. A device keeps its effective policy while slices live on it, whatever
// policy they requested.
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
    std::string path;  // The file that stores the policies.
    std::string boot_id;
    std::vector<Uuid> devices;
    std::optional<Policy> said;  // Policy from the command line.
    // Returns the policy of the slices on a device without a stored policy; no value if it has no slices.
    std::function<std::optional<Policy>(const Uuid&)> otherwise;
    // Returns whether all live slices can follow this policy. Called after a boot if the policy differs from
    // an effective one.
    std::function<bool(Policy)> may_follow;
    Holders holders;
  };
  struct Opened {
    std::string trouble;  // A message about a damaged file; empty if the file is sound.
    bool booted = false;  // A boot made the desired policy effective, even on devices with slices.
  };
  // Reads the stored policies. After a boot no process uses an earlier policy, so the desired one becomes
  // effective unless a slice that outlives its processes cannot follow it.
  Opened open(const Start&);

  // Sets the desired policy. If the policy cannot be stored, fails and changes nothing.
  Outcome<void> want(Policy, const Holders&);

  // Must be called after a slice started or ended. Returns true if a device changed its policy. If the change
  // cannot be stored, returns false, and the device keeps its policy until the next call.
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
