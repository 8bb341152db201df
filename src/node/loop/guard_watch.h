// Acts on what the kernel guard finds: kills a slice that went beyond its limit, and reports a guard that is no
// longer in force.
#pragma once

#include "node/life/lifecycle.h"

namespace carve::node {

class GuardWatch {
 public:
  // Both arguments must outlive this object.
  GuardWatch(NodeState& node, Lifecycle& lifecycle) : node_(node), lifecycle_(lifecycle) {}

  // Forgets slices that have ended, and watches the guard from now on. Called after the slices were adopted.
  void start();

 private:
  void take_findings();
  void take(const guard_finding&);
  void check();

  NodeState& node_;
  Lifecycle& lifecycle_;
};

}  // namespace carve::node
