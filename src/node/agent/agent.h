// The node agent: grants slices, knows who is inside them, and gives back what the dead held.
//
// It runs on one loop (node/os/loop.h). Requests come from serve/, processes that attach from attach/, deaths
// from pidfds and cgroups, the driver's truth from the sampler. What it decides by is pure and lies in
// place/, ledger/, tenant/identity and tenant/reconcile; here it is carried out.
//
// The order of steps makes a crash at any point repairable: the ledger says who holds what; pages without an
// entry in it are leftovers; an entry without pages or living processes has ended.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>

#include "ledger/store.h"
#include "ledger/truth.h"
#include "node/agent/policies.h"
#include "node/agent/tenant.h"
#include "node/arbiter/arbiter.h"
#include "node/arbiter/view.h"
#include "node/cdi/cdi.h"
#include "node/devices/sampler.h"
#include "node/os/loop.h"
#include "node/os/socket.h"
#include "node/tenant/keeper.h"
#include "place/place.h"
#include "wire/shm/attach.h"

namespace carve::node {

struct Event {
  int64_t utc_ns;
  std::string slice;  // Empty: the agent as a whole.
  std::string text;
};

struct Settings {
  std::string socket, state, cdi_dir;
  Strategy strategy = Strategy::binpack;
  bool contexts_in_slice = true;  // Contexts are charged to slices; otherwise to the device's reserve.
  AuditAct audit = AuditAct::report;
  OverQuotaAct over_quota = OverQuotaAct::refuse;
  Paths paths;                   // Where our libraries and the driver's lie.
  std::optional<Policy> policy;  // Said on the command line, in whichever way.
  std::map<std::string, std::string> labels;
  bool policy_per_slice = false;    // Slices of one device may follow different policies.
  bool unshared = false;            // Slices without a share are admitted beside enforced ones, as the last.
  bool overcommit_compute = false;  // More than the whole of a device's compute may be promised.
  std::optional<place::Topology> topology;  // How the devices are connected, in their order.
};

// What somebody wants changed of a living slice; absent: as it is. Memory and share of each of its devices.
struct Alteration {
  std::optional<Bytes> memory;
  std::optional<Share> share;
  std::optional<Policy> policy;
  std::optional<LatencyClass> latency;
};

// A device as found at start, and what changes about it.
struct NodeDevice {
  Device device;
  Bytes context;  // What one context takes; 0: not measured.
  std::string context_trouble;
  DeviceSample sample;
  unsigned minor = 0;  // /dev/nvidiaN
  std::string xid;     // The last one, as a sentence.
  std::vector<std::string> strangers;
};

class Agent {
 public:
  Agent(Loop& loop, Settings settings, std::vector<NodeDevice> devices, RuntimeDir runtime, Keeper keeper,
        std::unique_ptr<ledger::Store> store);

  // Before anything is served: the ledger is read, tenants that live are taken over, others end.
  // `rebuild`: the ledger was lost; its living part comes from the notes.
  Outcome<void> adopt(bool rebuild);
  void begin(Sampler& sampler);  // Heartbeat and reconciliation.

  // Requests. The caller has checked who asks.
  Outcome<const Tenant*> grant(Request request, const Peer& creator);
  place::Answer explain(const Request& request) const;
  // Which moves would empty so many devices, as the one who asks may know them, and whom its residents are.
  place::Plan repack(unsigned devices, uint32_t asking, std::vector<place::Resident>& who) const;
  Outcome<std::map<std::string, std::string>> enter(Tenant&, Peer peer, const std::string& command,
                                                    const std::string* visible_devices);
  Outcome<void> supervise(Tenant&, Peer peer);
  Outcome<void> add_container(Tenant&, pid_t init, const std::string& id);
  // `by`: who wants it, for the record.
  Outcome<void> alter(Tenant&, const Alteration&, const std::string& by);
  Outcome<void> want_policy(Policy, const std::string& by);  // Of the machine.
  void stop(Tenant&, const std::string& why);
  Outcome<void> thaw(Tenant&);  // What the audit froze goes on, and is let be.

  // A process that asks to be let in. Descriptors in the order of wire/shm/attach.h.
  shm::AttachReply attach(const Peer& peer, const shm::AttachRequest& request, std::vector<Fd>& descriptors);

  Tenant* find(const std::string& name);
  Tenant* tenant_of(pid_t pid);  // Whose this process is; null: nobody's.
  const std::map<uint64_t, std::unique_ptr<Tenant>>& tenants() const { return tenants_; }
  const std::vector<NodeDevice>& devices() const { return devices_; }
  const NodeDevice* device(const Uuid&) const;
  const ledger::Ledger& ledger() const { return ledger_; }
  const std::deque<Event>& events() const { return events_; }
  const Settings& settings() const { return settings_; }
  const RuntimeDir& runtime() const { return runtime_; }
  const Policies& policies() const { return policies_; }

  // From the arbiter (compute.cc). What was granted and had of a device; nothing where nobody arbitrates.
  std::optional<DeviceCompute> compute(const Uuid&) const;
  std::string metering() const;  // What its numbers rest on, as a sentence; empty: nothing is metered.
  std::vector<TraceSpan> trace(int64_t since_monotonic_ns) const;  // What has ended since, the oldest first.
  void leave();  // At an ordinary end: takes away what nobody uses.
  bool any_stopping() const {
    return std::ranges::any_of(tenants_, [](const auto& entry) { return entry.second->stopping; });
  }
  bool has_cgroups() const { return tree_.has_value() && cgroup_trouble_.empty(); }
  const std::string& cgroup_trouble() const { return cgroup_trouble_; }
  int64_t sample_age_ns() const;
  uint64_t samples() const { return samples_; }               // Taken so far.
  int64_t sample_took_ns() const { return sample_took_ns_; }  // The last of them.
  void event(const std::string& slice, std::string text);

 private:
  std::vector<place::DeviceSnapshot> snapshot() const;
  std::vector<place::Resident> residents(uint32_t asking) const;
  ledger::Stamp now() const;
  Outcome<void> announce(const Tenant&) const;
  Outcome<void> make_pages(Tenant&);
  void fill_control(Tenant&);
  void compute_changed(Tenant&);  // Its share, policy or class is another from now on.
  void compute_ended(Tenant&);
  void govern(const Uuid&);
  Arbiter* arbiter(const Uuid&) const;
  void for_arbiters_of(const Tenant&, const std::function<void(Arbiter&)>&);
  Outcome<void> may_have(const Tenant&, const ledger::Terms&, const Alteration&) const;
  Outcome<void> shrink(Tenant&, Bytes memory);
  Share most_shares() const { return settings_.overcommit_compute ? ledger::unlimited_shares : whole_device; }
  Policies::Holders policy_holders() const;
  void open_policies();
  void keep_report(Tenant&);
  void note(const Tenant&);
  void watch_cgroup(Tenant&);
  void watch(Tenant&, Watched&, void (Agent::*ended)(Tenant&, const ProcessId&));
  void creator_ended(Tenant&, const ProcessId&);
  void root_ended(Tenant&, const ProcessId&);
  void supervisor_ended(Tenant&, const ProcessId&);
  void container_ended(Tenant&, const ProcessId&);
  void member_ended(uint64_t tenant, ProcessId);
  bool reclaim_slot(Tenant&, unsigned slot);
  void release_slot(Tenant&, unsigned slot);
  void add_member(Tenant&, const ProcessId&, unsigned slot, Fd pidfd);
  bool inhabited(Tenant&);
  void look_for_descendants(Tenant&);
  void kill_all(Tenant&);
  void end_if_over(uint64_t id);
  void end(uint64_t id, const std::string& why);
  std::string environment_devices(const Tenant&, const std::string* visible) const;

  ledger::Observed observed() const;  // What lies there; who lives is not looked at.
  Outcome<void> agree(const ledger::Observed&);
  bool adopt_tenant(const ledger::Use& use);  // False: it is over.
  void recover_report(Tenant&);
  void reach_keeper();
  void watch_keeper();

  void beat();
  void reconcile();
  void take_sample(const Sample&);
  void settle(Tenant&);
  void look_for_execs(Tenant&);
  void audit(Tenant&, const NodeDevice&, const ProcessUse&);
  void audit_work(const NodeDevice&);
  void freeze(Tenant&, const ProcessId&);

  Loop& loop_;
  Settings settings_;
  std::vector<NodeDevice> devices_;
  RuntimeDir runtime_;
  Keeper keeper_;
  std::unique_ptr<ledger::Store> store_;
  ledger::Ledger ledger_;
  Policies policies_;
  std::map<uint64_t, std::unique_ptr<Tenant>> tenants_;
  Mapped<shm::Heartbeat> heartbeat_;
  std::map<Uuid, std::unique_ptr<Arbiter>> arbiters_;  // Before the tenants end: they use their pages.
  std::optional<CgroupTree> tree_;
  std::string group_;           // "carve-1a2b3c4d"
  std::string cgroup_trouble_;  // Why tenants get none.
  std::deque<Event> events_;
  Sampler* sampler_ = nullptr;
  uint64_t beats_ = 0;
  int64_t last_sample_ns_ = 0;
  int64_t sample_took_ns_ = 0;
  uint64_t samples_ = 0;
  uint64_t looks_ = 0;
};

inline constexpr size_t most_events = 1000;

}  // namespace carve::node
