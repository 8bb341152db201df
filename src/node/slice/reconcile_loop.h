// The agent's periodic work. It writes the heartbeat every 50 ms, by which the guest library sees that an
// agent runs. Once a second, and four times a second while a device is arbitrated, it asks the driver for a
// sample, gathers what the reconciler decides on (node/reconcile/reconciler.h), and carries out the actions.
#pragma once

#include "node/devices/sampler.h"
#include "node/reconcile/reconciler.h"
#include "node/slice/lifecycle.h"

namespace carve::node {

class ReconcileLoop {
 public:
  // Both must outlive this object.
  ReconcileLoop(NodeState& node, Lifecycle& lifecycle) : node_(node), lifecycle_(lifecycle) {}

  void start(Sampler& sampler);

 private:
  void beat();
  void request_sample();
  void take(const Sample&);
  Observed observe(const Sample&);
  ProcessObserved observe(const ProcessUse&, size_t device) const;
  SliceObserved observe(const LiveSlice&, const std::vector<std::optional<DeviceCompute>>&) const;
  void keep_figures(const Sample&, const Observed&, const Reconciled&);
  void attribute(const std::vector<XidRecord>&);  // Names the slice of each Xid.
  void carry_out(const Observed&, const Action&);
  void freeze_slice(LiveSlice&, const os::ProcessId&);
  void record_alive();

  NodeState& node_;
  Lifecycle& lifecycle_;
  Reconciler reconciler_;
  Sampler* sampler_ = nullptr;
  uint64_t beats_ = 0;
  uint64_t turns_ = 0;
  int64_t recorded_alive_ns_ = 0;  // CLOCK_MONOTONIC of the last Alive.
};

}  // namespace carve::node
