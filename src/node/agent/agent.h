// The node agent: grants slices, tracks their processes, and releases what ended processes had charged.
//
// It runs on one loop (os/loop.h). Requests come from serve/, attaching processes from attach/, ends of
// processes from pidfds and cgroups, the driver's reports from the sampler. The decisions are pure code in
// place/, ledger/, slice/identity and slice/reconcile; the agent carries them out.
//
// The order of steps makes a crash at any point repairable. The ledger has every grant. Shared memory without
// a ledger entry is left over; an entry without shared memory and living processes has ended.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "ledger/reconcile.h"
#include "ledger/store.h"
#include "node/agent/event_log.h"
#include "node/agent/live_slice.h"
#include "node/cdi/cdi.h"
#include "node/compute/arbiter.h"
#include "node/compute/policies.h"
#include "node/compute/view.h"
#include "node/devices/sampler.h"
#include "node/slice/fd_store.h"
#include "os/loop.h"
#include "os/socket.h"
#include "place/place.h"
#include "wire/shm/attach.h"

namespace carve::node {

struct Settings {
  std::string socket, state, cdi_dir;
  Strategy strategy = Strategy::binpack;
  bool contexts_in_slice = true;  // Contexts are charged to slices; otherwise to the device's reserved bytes.
  AuditAction audit = AuditAction::report;
  OverQuotaAction over_quota = OverQuotaAction::refuse;
  Paths paths;                   // Paths of Carve's and the driver's libraries.
  std::optional<Policy> policy;  // From the command line: option or label.
  std::map<std::string, std::string> labels;
  bool policy_per_slice = false;             // Slices of one device may follow different policies.
  bool admit_best_effort = false;            // Slices without a share are admitted beside enforced ones.
  bool overcommit_compute = false;           // More than 100 % of a device's compute may be granted.
  MemoryUnit memory_unit = MemoryUnit::gib;  // What an integer memory request counts.
  std::optional<place::Topology> topology;   // Links between the devices, in their order.
};

// New terms of a running slice; an absent field does not change. Memory and share are per device.
struct TermsUpdate {
  std::optional<Bytes> memory;
  std::optional<Share> share;
  std::optional<Policy> policy;
  std::optional<LatencyClass> latency;
};

// A device as found at the start, and its changing state.
struct NodeDevice {
  Device device;
  Bytes context;  // Size of one context; 0: not measured.
  std::string context_trouble;
  DeviceSample sample;
  unsigned minor = 0;  // /dev/nvidiaN
  std::string xid;     // The last Xid, as a sentence.
  std::vector<std::string> unmanaged_processes;

  DeviceHealth health() const {
    if (sample.health.state != HealthState::ok || xid.empty()) return sample.health;
    return {HealthState::xid, xid};
  }
};

// Who reads a sentence. Names of other users' slices are hidden from a viewer without the right to see all.
struct Viewer {
  uint32_t uid;
  bool all;
  bool sees(uint32_t owner) const { return all || uid == owner; }
};

class Agent {
 public:
  Agent(os::Loop& loop, Settings settings, std::vector<NodeDevice> devices, RuntimeDir runtime,
        FdStore fd_store, std::unique_ptr<ledger::Store> store);

  // Called before the agent serves: reads the ledger, adopts the living slices and ends the others. With
  // `rebuild` the ledger was lost, and its living part comes from the state files.
  Outcome<void> adopt(bool rebuild);
  void begin(Sampler& sampler);  // Starts heartbeat and reconciliation.

  // Requests. The route has checked the caller's rights.
  Outcome<const LiveSlice*> grant(const Request& request, const os::ProcessId& creator, const Viewer& viewer);
  place::Answer explain(const Request& request, const Viewer& viewer) const;
  // Returns the moves that would empty so many devices. `who` receives the slices of the plan, with names as
  // the viewer may see them.
  place::Plan plan_consolidation(unsigned devices, const Viewer& viewer,
                                 std::vector<place::PlacedSlice>& who) const;
  Outcome<std::map<std::string, std::string>> enter(LiveSlice&, os::Peer peer, const std::string& command,
                                                    const std::string* visible_devices);
  Outcome<void> supervise(LiveSlice&, os::Peer peer);
  Outcome<void> add_container(LiveSlice&, pid_t init, const std::string& id);
  // `by` names the caller, for the event.
  Outcome<void> alter(LiveSlice&, const TermsUpdate&, const std::string& by);
  Outcome<void> want_policy(Policy, const std::string& by);  // For the whole node.
  void stop(LiveSlice&, const std::string& why);
  Outcome<void> thaw(LiveSlice&);  // Continues a frozen slice.

  // Answers a process that attaches. The order of the descriptors is that of wire/shm/attach.h.
  shm::AttachReply attach(const os::Peer& peer, const shm::AttachRequest& request,
                          std::vector<os::Fd>& descriptors);

  LiveSlice* find(const std::string& name);
  LiveSlice* slice_of(pid_t pid);  // The slice of this process, or null.
  const std::map<uint64_t, std::unique_ptr<LiveSlice>>& slices() const { return slices_; }
  const std::vector<NodeDevice>& devices() const { return devices_; }
  const NodeDevice* device(const Uuid&) const;
  const ledger::Ledger& ledger() const { return ledger_; }
  // Usage records with a larger id, also ended ones, from the store; at most `most`.
  Outcome<std::vector<ledger::UsageRecord>> usage_after(uint64_t id, size_t most) const {
    return store_->records_after(id, most);
  }
  const EventLog& events() const { return events_; }
  EventLog& events() { return events_; }
  const Settings& settings() const { return settings_; }
  const RuntimeDir& runtime() const { return runtime_; }
  const Policies& policies() const { return policies_; }

  // Returns the arbiter's figures of a device (compute.cc); no value if the device is not arbitrated.
  std::optional<DeviceCompute> compute(const Uuid&) const;
  std::string metering() const;  // How compute is metered, as a sentence; empty: it is not metered.
  std::vector<TraceSpan> trace(int64_t since_monotonic_ns) const;  // Ended since then, oldest first.
  void leave();  // Called at an ordinary end: removes the unused cgroup.
  bool any_stopping() const {
    return std::ranges::any_of(slices_, [](const auto& entry) { return entry.second->stopping; });
  }
  bool has_cgroups() const { return tree_.has_value() && cgroup_trouble_.empty(); }
  const std::string& cgroup_trouble() const { return cgroup_trouble_; }
  int64_t sample_age_ns() const;
  uint64_t samples() const { return samples_; }               // Number of samples taken.
  int64_t sample_took_ns() const { return sample_took_ns_; }  // Duration of the last sample.
  void event(const std::string& slice, std::string text);

 private:
  std::vector<place::DeviceSnapshot> snapshot() const;
  std::vector<place::PlacedSlice> placed_slices(const Viewer&) const;
  ledger::Stamp now() const;
  Outcome<void> admissible(const Request&) const;
  Slice placed(const Request&, const place::Placement&) const;
  void make_cgroup(LiveSlice&);
  Outcome<void> announce(const LiveSlice&) const;
  Outcome<void> make_shared_memory(LiveSlice&);
  void fill_control(LiveSlice&);
  void compute_changed(LiveSlice&);  // Called when the share, policy or class has changed.
  void compute_ended(LiveSlice&);
  void arbitrate(const Uuid&);
  Arbiter* arbiter(const Uuid&) const;
  void for_arbiters_of(const LiveSlice&, const std::function<void(Arbiter&)>&);
  Outcome<void> may_have(const LiveSlice&, const ledger::Terms&, const TermsUpdate&) const;
  Outcome<void> shrink(LiveSlice&, Bytes memory);
  Share most_shares() const { return settings_.overcommit_compute ? ledger::unlimited_shares : whole_device; }
  Policies::Holders policy_holders() const;
  void open_policies();
  void keep_report(LiveSlice&);
  void write_state(const LiveSlice&);
  void watch_cgroup(LiveSlice&);
  void watch(LiveSlice&, Watched&, void (Agent::*ended)(LiveSlice&, const os::ProcessId&));
  void creator_ended(LiveSlice&, const os::ProcessId&);
  void root_ended(LiveSlice&, const os::ProcessId&);
  void supervisor_ended(LiveSlice&, const os::ProcessId&);
  void container_ended(LiveSlice&, const os::ProcessId&);
  void attached_ended(uint64_t slice, os::ProcessId);
  bool reclaim_slot(LiveSlice&, unsigned slot);
  void add_attached(LiveSlice&, const os::ProcessId&, unsigned slot, os::Fd pidfd);
  bool has_processes(LiveSlice&);
  void scan_descendants(LiveSlice&);
  void kill_all(LiveSlice&);
  void end_if_empty(uint64_t id);
  void end(uint64_t id, const std::string& why);
  std::string environment_devices(const LiveSlice&, const std::string* visible) const;

  ledger::Observed observed() const;  // State files and boot; processes are not scanned.
  Outcome<void> agree(const ledger::Observed&);
  bool adopt_slice(const ledger::UsageRecord& record);  // Returns false if the slice has ended.
  bool adopt_shared_memory(LiveSlice&, bool known);
  void adopt_attached(LiveSlice&);
  void adopt_containers(LiveSlice&, const StateFile&);
  void watch_adopted(LiveSlice&);
  void recover_report(LiveSlice&);
  void reach_fd_store();
  void watch_fd_store();

  void beat();
  void reconcile();
  void take_sample(const Sample&);
  void charge_growth(LiveSlice&);
  void scan_execs(LiveSlice&);
  void audit(LiveSlice&, const NodeDevice&, const ProcessUse&);
  void audit_work(const NodeDevice&);
  void record_alive();
  void freeze(LiveSlice&, const os::ProcessId&);

  os::Loop& loop_;
  Settings settings_;
  std::vector<NodeDevice> devices_;
  RuntimeDir runtime_;
  FdStore fd_store_;
  std::unique_ptr<ledger::Store> store_;
  ledger::Ledger ledger_;
  Policies policies_;
  std::map<uint64_t, std::unique_ptr<LiveSlice>> slices_;
  Mapped<shm::Heartbeat> heartbeat_;
  std::map<Uuid, std::unique_ptr<Arbiter>> arbiters_;  // Destroyed before the slices, whose pages they use.
  std::optional<CgroupTree> tree_;
  std::string group_;           // "carve-1a2b3c4d"
  std::string cgroup_trouble_;  // Why slices get no cgroup.
  EventLog events_;
  Sampler* sampler_ = nullptr;
  uint64_t beats_ = 0;
  int64_t last_sample_ns_ = 0;
  int64_t sample_took_ns_ = 0;
  uint64_t samples_ = 0;
  uint64_t looks_ = 0;
  int64_t recorded_alive_ns_ = 0;  // CLOCK_MONOTONIC of the last Alive.
};

}  // namespace carve::node
