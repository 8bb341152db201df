// Reports processes that used a device without attaching and ended before a sample showed them, if NVML
// accounts for ended processes. node/reconcile/ended_audit.h decides; this file collects what is known about
// each process.
#pragma once

#include "node/devices/sampler.h"
#include "node/identity/slice_members.h"
#include "node/reconcile/ended_audit.h"
#include "node/reconcile/reconciler.h"
#include "node/slice/node_state.h"

namespace carve::node {

class EndedWatch {
 public:
  explicit EndedWatch(NodeState& node) : node_(node) {}  // `node` must outlive this object.

  // Records which processes are in the slices' cgroups. Called in each turn of the loop.
  void see_members(uint64_t turn, int64_t turn_interval_ns);
  void see_descendants(const LiveSlice&);  // For a slice without a cgroup, after a scan.
  void audit(const Sample&, const Observed&);

 private:
  AccountedObserved observe(const AccountedProcess&, size_t device, const Observed&) const;
  KnownAs known_as(const AccountedProcess&) const;
  const SliceMembers::Slice* slice_of(const AccountedProcess&) const;
  void report(const EndedFinding&);

  NodeState& node_;
  EndedAudit audit_;
  SliceMembers members_;
  bool accounting_ = false;              // Whether any device is accounted.
  std::map<size_t, bool> is_accounted_;  // By device; from its last successful sample.
};

}  // namespace carve::node
