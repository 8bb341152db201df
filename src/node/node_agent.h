// The agent of this node: grants slices, tracks their processes, and releases the charges of ended processes.
//
// It combines the parts in node/slice and returns values to the sockets. It runs on one loop (os/loop.h).
// Requests come from node/api, attaching processes from node/attach, the ends of processes from pidfds and
// cgroups, and the driver's reports from the sampler. The decisions are pure code in place/, ledger/, share/
// and node/reconcile.
#pragma once

#include "node/agent/agent.h"
#include "node/life/lifecycle.h"

namespace carve::node {

class NodeAgent final : public Agent {
 public:
  // Both arguments must outlive this object.
  NodeAgent(NodeState& node, Lifecycle& lifecycle) : node_(node), lifecycle_(lifecycle) {}

  Outcome<SliceView> grant(const Request&, const os::ProcessId& creator, const Viewer&) override;
  place::Answer explain(const Request&, const Viewer&) const override;
  ConsolidationView plan_consolidation(unsigned devices, const Viewer&) const override;
  Outcome<Entry> enter(SliceId, os::Peer, const EnterRequest&) override;
  Outcome<void> supervise(SliceId, os::Peer, const api::Supervision&) override;
  Outcome<void> limit_time(SliceId, const api::TimeLimit&, const std::string& by) override;
  Outcome<api::TimeLimit> time_limit_of(SliceId) const override;
  Outcome<void> add_container(SliceId, pid_t init, const std::string& container) override;
  Outcome<void> refuse_container(SliceId, pid_t init, const std::string& message) override;
  Outcome<SliceView> update(SliceId, const TermsUpdate&, const std::string& by) override;
  Outcome<void> set_policy(Policy, const std::string& by) override;
  Outcome<void> set_memory_unit(MemoryUnit, WhenHeld, const std::string& by) override;
  Outcome<void> refuse_grants(const std::string& message, const std::string& by) override;
  Outcome<void> set_label(const std::string& key, const std::optional<std::string>& value,
                          const std::string& by) override;
  Outcome<api::Limit> set_limit(const api::LimitChange&, const std::string& by) override;
  Outcome<api::Limit> remove_limit(const std::string& key, const std::string& by) override;
  api::LimitList limits() const override;
  api::LimitList limits_of(uint32_t uid, const std::string& account) const override;
  Outcome<SliceView> stop(SliceId, const std::string& why) override;
  Outcome<SliceView> release(SliceId, const std::string& why) override;
  void withdraw(ContainerSlot) override;
  Outcome<void> set_claim_pods(SliceId, std::vector<ClaimPod>) override;
  api::SlotFiles files_of(ContainerSlot) const override;
  Outcome<SliceView> thaw(SliceId) override;
  std::optional<shm::AttachReply> attach(const os::Peer&, const std::optional<AttachPoint>& through,
                                         const shm::AttachRequest&, std::vector<os::Fd>& descriptors,
                                         const std::function<void()>& again) override;
  bool inspect_processes(const std::string& slice, const std::function<void()>& done) override;

  std::vector<SliceView> slices(const SliceQuery&) const override;
  std::optional<SliceView> slice_of(pid_t) const override;
  std::vector<DeviceView> devices() const override;
  NodeView node() const override;
  EventLog& events() override { return node_.events; }
  Outcome<std::vector<ledger::UsageRecord>> usage_after(uint64_t id, size_t most) const override;
  Outcome<std::vector<ledger::UsageRecord>> usage_of(const std::vector<uint64_t>& ids) const override;
  std::vector<TraceSpan> trace(int64_t since_monotonic_ns) const override;

 private:
  SliceView shown(const LiveSlice&, bool with_processes = true) const;
  void add_lost(std::vector<DeviceView>&, const ledger::Balance&) const;
  void name_neighbours(DeviceCompute&) const;
  NodeState& node_;
  Lifecycle& lifecycle_;
};

}  // namespace carve::node
