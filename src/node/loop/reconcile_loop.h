// The agent's periodic work. Every 50 ms it follows what the slices write into their pages. Once a second,
// and four times a second while a device is arbitrated, it requests a sample from the driver, collects the
// reconciler's input (node/reconcile/reconciler.h), and carries out the actions.
#pragma once

#include "node/devices/sampler.h"
#include "node/identity/cgroup_moves.h"
#include "node/life/lifecycle.h"
#include "node/loop/ended_watch.h"
#include "node/reconcile/reconciler.h"
#include "node/slice/shared_blocks.h"
#include "os/clock.h"

namespace carve::node {

class ReconcileLoop {
 public:
  // Both must outlive this object.
  ReconcileLoop(NodeState& node, Lifecycle& lifecycle)
      : node_(node), lifecycle_(lifecycle), blocks_(node.loop, node.slices), ended_watch_(node) {}

  void start();
  // Measures the devices from now on. `sampler` must outlive this object's use of the loop.
  void sample_with(Sampler& sampler);

 private:
  void follow_pages();
  void request_sample();
  void take(const Sample&);
  Observed observe(const Sample&);
  ProcessObserved observe(const ProcessUse&, size_t device);
  // Returns the last inspection of a process; null if it has just been requested, and the next sample comes
  // after it.
  const Inspection* inspection_of(const os::ProcessId&, const LiveSlice*);
  void report_late(const Inspection&, uint64_t slice);
  SliceObserved observe(const LiveSlice&, const std::vector<std::optional<DeviceCompute>>&) const;
  void keep_figures(const Sample&, const Observed&, const Reconciled&);
  void report_moves();                            // Between the slices' cgroups.
  void attribute(const std::vector<XidRecord>&);  // Names the slice of each Xid.
  void carry_out(const Observed&, const Action&);
  void freeze_slice(LiveSlice&, const os::ProcessId&);
  void record_alive();

  NodeState& node_;
  Lifecycle& lifecycle_;
  SharedBlocks blocks_;
  Reconciler reconciler_;
  CgroupMoves moves_;
  EndedWatch ended_watch_;
  Sampler* sampler_ = nullptr;
  uint64_t turns_ = 0;               // Number of calls of follow_pages().
  uint64_t intervals_ = 0;           // Number of samples.
  int64_t moves_not_before_ns_ = 0;  // CLOCK_MONOTONIC: earliest next read of the slices' cgroups.
  // CLOCK_MONOTONIC of the agent's start: refusals before it belong to another agent's --over-quota.
  uint64_t started_ns_ = static_cast<uint64_t>(os::monotonic_ns());
  int64_t recorded_alive_ns_ = 0;  // CLOCK_MONOTONIC time of the last Alive.
};

}  // namespace carve::node
