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

// The label by which a node pool's policy reaches its nodes.
inline constexpr const char* policy_label = "vke.volcengine.com/mgpu-compute-policy";

class Policies {
 public:
  // Returns the names of the slices that live on a device.
  using Holders = std::function<std::vector<std::string>(const Uuid&)>;

  // Reads the stored policies. A device without a stored policy follows `otherwise(device)`, the policy of
  // its slices, else the desired one. `trouble` is a sentence about a damaged file, or empty.
  void open(std::string path, std::span<const Uuid> devices, std::optional<Policy> said,
            const std::function<std::optional<Policy>(const Uuid&)>& otherwise, const Holders&,
            std::string& trouble);

  // Sets the desired policy. On failure the policy could not be stored, and nothing was changed.
  Outcome<void> want(Policy, const Holders&);

  // Called after a slice started or ended. Returns true if a device changed its policy. Returns false too if
  // the change could not be stored; the device then keeps its policy until the next call.
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
