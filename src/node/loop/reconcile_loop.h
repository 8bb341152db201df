// The agent's periodic work. Every 50 ms it reads what the slices write to their pages. Once a second, and
// four times a second while a device is arbitrated, it requests a sample from the driver, collects the
// reconciler's input (node/reconcile/reconciler.h), and carries out the reconciler's actions.
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
  // Both arguments must outlive this object.
  ReconcileLoop(NodeState& node, Lifecycle& lifecycle)
      : node_(node), lifecycle_(lifecycle), blocks_(node.loop, node.slices), ended_watch_(node) {}

  void start();
  // Measures the devices from now on. `sampler` must remain valid while the loop runs.
  void sample_with(Sampler& sampler);

 private:
  void follow_pages();
  void request_sample();
  void take(const Sample&);
  Observed observe(const Sample&);
  ProcessObserved observe(const ProcessUse&, size_t device);
  // Returns the last inspection of a process. Null if it has only just been requested; the next sample is
  // taken after it.
  const Inspection* inspection_of(const os::ProcessId&, const LiveSlice*);
  void report_late(const Inspection&, uint64_t slice);
  SliceObserved observe(const LiveSlice&, const std::vector<std::optional<DeviceCompute>>&) const;
  void divide_energy(const Sample&, const Reconciled&);
  bool is_active(const LiveSlice&, const SliceUse&) const;
  void keep_figures(const Sample&, const Observed&, const Reconciled&);
  void report_moves();                            // Reports processes that changed the slice's cgroup.
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
  // Start of the agent on CLOCK_MONOTONIC. Earlier rejections belong to another agent's --over-quota.
  uint64_t started_ns_ = static_cast<uint64_t>(os::monotonic_ns());
  int64_t recorded_alive_ns_ = 0;  // CLOCK_MONOTONIC time of the last Alive change.
};

}  // namespace carve::node
