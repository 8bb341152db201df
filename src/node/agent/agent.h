// The agent's interface, used by its sockets (API, attach, metrics). Results are values, so callers never get
// a live slice or a shared page. node/node_agent.h implements the interface, and tests use
// testing/agent_fake.h.
//
// All functions must be called on the agent's loop. The caller's rights must have been checked.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/attach_point.h"
#include "core/device_readings.h"
#include "core/enforcement.h"
#include "core/request.h"
#include "core/setting.h"
#include "core/violation.h"
#include "core/xid.h"
#include "ledger/usage_record.h"
#include "node/agent/compute_figures.h"
#include "node/agent/event_log.h"
#include "node/agent/trace.h"
#include "node/guard/slice_guard.h"
#include "os/socket.h"
#include "place/place.h"
#include "wire/api/limit.h"
#include "wire/api/slice.h"
#include "wire/api/slice_life.h"
#include "wire/shm/attach.h"

namespace carve::node {

using SliceId = uint64_t;  // The id of the slice's usage record.

// The reader of a message. Names of other users' slices are hidden from a viewer without the
// right to see all.
struct Viewer {
  uint32_t uid;
  bool all;
  bool sees(uint32_t owner) const { return all || uid == owner; }
};

// The new terms of a running slice. Absent fields stay unchanged. Memory and share are per device.
struct TermsUpdate {
  std::optional<Bytes> memory;
  std::optional<Share> share;
  std::optional<Policy> policy;
  std::optional<LatencyClass> latency;
  bool is_of_operator = false;  // Operators change a slice as often as they like.
  bool is_dry_run = false;      // Only checks whether the terms would be accepted now.
};

// A process of a slice.
struct ProcessView {
  pid_t pid = 0;
  pid_t inner_pid = 0;  // Pid in its own pid namespace.
  std::string command;
  bool attached = false;
  Bytes used;  // Driver-reported, on all devices.
};

// The memory of one slice part.
struct PartView {
  Bytes charged;
  Bytes spilled;
  Bytes used;  // Driver-reported.
  Bytes peak;  // Maximum of the charged bytes.
  // Driver-reported utilization in percent, for the last sampling period in which the slice's kernels ran.
  unsigned utilization_percent = 0;
  uint64_t energy_microjoules = 0;  // Its part of the device's energy since the grant.
};

struct SliceView {
  ledger::UsageRecord record;
  SliceState state = SliceState::granted;
  Enforcement memory{enforced_by_guest, "", {}};  // Enforcement of its memory limits.
  std::string command;                            // The command line of the slice's program.
  std::string why;                                // Why it is stopping, or why it ended.
  bool entered = false;
  std::optional<ContainerSlot> slot;
  std::vector<ClaimPod> pods;             // Those that may use the claim.
  std::vector<std::string> unknown_pods;  // Uids of pods that tried to attach and may yet be allowed to.
  std::vector<XidCount> xids;             // Caused by its processes since the agent started.
  std::vector<Violation> violations;      // Since the agent started.
  int64_t refused_utc_ns = 0;             // When its quota last refused memory; 0 if never.
  int64_t idle_ns = 0;                 // Since its kernels last ran, or since the grant or the agent's start.
  std::vector<PartView> parts;         // One for each part of the record; empty after its end.
  std::vector<ProcessView> processes;  // Set if the query requested them.

  const std::string& name() const { return record.slice.name; }
};

struct SliceQuery {
  std::optional<std::string> name;  // No value means all slices.
  bool ended = false;               // Include ended slices, after the live ones, oldest first.
  bool processes = false;           // Include the slices' processes, as of the last inspection.
};

// A device as found at the start, with its current state.
struct DeviceView {
  Device device;
  DeviceHealth health;
  bool is_reported = true;  // Whether the driver reports the device, or only the ledger knows it.
  Bytes context;            // Size of one context; 0 if not measured.
  std::string context_trouble;
  Bytes used;                                 // In use by all processes, driver-reported.
  Bytes used_in_slices, used_outside_slices;  // Parts of `used`, without the driver's own use.
  unsigned utilization_percent = 0;
  std::string pci_id;
  DeviceReadings readings;
  DeviceMode mode = DeviceMode::whole;
  std::vector<XidCount> xids;                    // Reported by the driver, since the agent started.
  uint32_t last_xid = 0;                         // The last of them; 0 if there was none.
  bool processes_hidden = false;                 // The driver does not report the memory of each process.
  std::string ended_trouble;                     // Why ended processes are not audited; empty if they are.
  std::vector<std::string> unmanaged_processes;  // Each as a message.
  Bytes free;                                    // Memory that is not granted.
  std::vector<SliceId> slices;                   // The live slices with a part on the device.
  Setting<Policy> policy;
  std::optional<DeviceCompute> compute;  // No value if no share on it is enforced.
};

// Returns why a device in this mode is not offered for slices, and how to change that; empty for a whole
// device.
std::string mode_message(DeviceMode);

// The agent: its options, and what it found on its machine.
struct NodeView {
  std::string socket, state, cdi_dir;
  std::string preload, shims;  // The guest library and the directory of the shims.
  std::string simulated;       // "a10x2". Empty for real devices.
  std::string host_name;       // Name of this machine, or of the node in a cluster.
  Strategy strategy = Strategy::binpack;
  Bookkeeper bookkeeper = Bookkeeper::agent;
  Setting<MemoryUnit> memory_unit;
  std::string grants_refused;        // Message that rejects new slices; empty if they are allowed.
  bool starting = false;             // If set, no slices are granted yet.
  Bytes spill_limit, spill_granted;  // Host memory for the spill of all slices.
  std::map<std::string, std::string> labels;
  std::vector<std::string> links;  // Links between devices as in place::Topology; empty if unknown.
  bool policy_per_slice = false, admit_best_effort = true, overcommit_compute = false;
  bool dcgm_names = true;  // Metrics include DCGM's series of the devices.
  bool contexts_in_slice = true;
  AuditAction audit = AuditAction::report;
  OverQuotaAction over_quota = OverQuotaAction::refuse;
  Policy policy = Policy::fixed_share;  // Desired policy; each device has its effective one.
  uint64_t samples = 0;                 // Number of samples taken from the driver.
  int64_t sample_took_ns = 0;           // Duration of the last sample.
  int64_t longest_turn_ns = 0;          // The longest turn of the loop since the start.
  int64_t sample_age_ns = INT64_MAX;    // Age of the last sample; INT64_MAX before the first.
  std::string runtime_dir;              // Directory of the control pages.
  bool runtime_in_memory = false;       // Whether it is on a tmpfs.
  bool limits_sealed = false;           // Whether slices get their control pages through a read-only mount.
  std::string cgroup_trouble;           // Why slices get no cgroup; empty if they get one.
  std::string kernel_log;               // The log that names the process of an Xid.
  std::string kernel_log_trouble;       // Why the log cannot be read; empty if it can.
  GuardStatus guard;                    // Enforcement of memory limits on this node.
  std::string process_lists_trouble;    // Why nvidia-smi in a slice shows others' processes, or empty.
  unsigned polled_processes = 0;        // Processes whose work is detected by polling CUDA events.
};

// The moves that would empty devices, and the affected slices. Positions are those in devices().
struct ConsolidationView {
  place::Plan plan;
  std::vector<place::PlacedSlice> slices;
};

struct EnterRequest {
  std::string command;                         // For display.
  std::optional<std::string> visible_devices;  // The program's CUDA_VISIBLE_DEVICES if it is set.
  bool joins = false;  // Whether the program must be running, and the caller becomes another process.
};
struct Entry {
  std::map<std::string, std::string> environment;  // To set before the program is executed.
  bool cgroup = false;                             // Whether the process is now in the slice's cgroup.
};

// Whether a change that running slices block is rejected or deferred.
enum class WhenHeld : uint8_t { refuse, wait };

class Agent {
 public:
  virtual ~Agent() = default;

  // If the process `creator` ends before a program has entered the slice, the slice is removed again.
  virtual Outcome<SliceView> grant(const Request&, const os::ProcessId& creator, const Viewer&) = 0;
  virtual place::Answer explain(const Request&, const Viewer&) const = 0;
  virtual ConsolidationView plan_consolidation(unsigned devices, const Viewer&) const = 0;
  virtual Outcome<Entry> enter(SliceId, os::Peer, const EnterRequest&) = 0;
  virtual Outcome<void> supervise(SliceId, os::Peer, const api::Supervision&) = 0;
  // Sets the time limit of the slice, or removes it if it has 0 s. `by` names the caller, for the event.
  virtual Outcome<void> limit_time(SliceId, const api::TimeLimit&, const std::string& by) = 0;
  // Returns the limit with the time that is left; 0 s if there is none.
  virtual Outcome<api::TimeLimit> time_limit_of(SliceId) const = 0;
  virtual Outcome<void> add_container(SliceId, pid_t init, const std::string& container) = 0;
  // Rejects the processes of a container with this message.
  virtual Outcome<void> refuse_container(SliceId, pid_t init, const std::string& message) = 0;
  // `by` names the caller, for the event.
  virtual Outcome<SliceView> update(SliceId, const TermsUpdate&, const std::string& by) = 0;
  virtual Outcome<void> set_policy(Policy, const std::string& by) = 0;  // For the whole node.
  // Sets the unit of integer memory requests. Fails if running slices were requested in units, unless the
  // change may wait.
  virtual Outcome<void> set_memory_unit(MemoryUnit, WhenHeld, const std::string& by) = 0;
  // Rejects new slices with the message; an empty message allows them again.
  virtual Outcome<void> refuse_grants(const std::string& message, const std::string& by) = 0;
  // Sets a label of the node, or removes it if there is no value.
  virtual Outcome<void> set_label(const std::string& key, const std::optional<std::string>& value,
                                  const std::string& by) = 0;
  // Sets or removes the limit of a user or an account.
  virtual Outcome<api::Limit> set_limit(const api::LimitChange&, const std::string& by) = 0;
  virtual Outcome<api::Limit> remove_limit(const std::string& key, const std::string& by) = 0;
  virtual api::LimitList limits() const = 0;
  // Returns only the limits that apply to the user and to its account.
  virtual api::LimitList limits_of(uint32_t uid, const std::string& account) const = 0;
  // Returns the slice after the call: stopping or ended.
  virtual Outcome<SliceView> stop(SliceId, const std::string& why) = 0;
  // Ends the slice now or with its last process. Returns the slice after the call.
  virtual Outcome<SliceView> release(SliceId, const std::string& why) = 0;
  // Removes the CDI file of a slot that kubelet is giving to another container.
  virtual void withdraw(ContainerSlot) = 0;
  // Returns what a container of the slot needs from a runtime without CDI.
  virtual api::SlotFiles files_of(ContainerSlot) const = 0;
  virtual Outcome<SliceView> thaw(SliceId) = 0;  // Continues a frozen slice.
  // Sets which pods may use the slice of a claim. Those that tried in vain and are not among them are foreign.
  virtual Outcome<void> set_claim_pods(SliceId, std::vector<ClaimPod>) = 0;
  // Answers a process that attaches through the directory of an attach point or through the common one. The
  // order of the descriptors is that of wire/shm/attach.h. Returns no value if the process must be inspected
  // first. `again` is then called on the loop after the inspection, and repeating the call returns an answer.
  virtual std::optional<shm::AttachReply> attach(const os::Peer&, const std::optional<AttachPoint>& through,
                                                 const shm::AttachRequest&, std::vector<os::Fd>& descriptors,
                                                 const std::function<void()>& again) = 0;

  // Starts to read the commands of a slice's processes, which slices() shows. Returns false if all are known;
  // otherwise calls `done` on the loop after at most 2 s.
  virtual bool inspect_processes(const std::string& slice, const std::function<void()>& done) = 0;

  // Returns the live slices in the order of their grants, and ended ones if the query requests them.
  virtual std::vector<SliceView> slices(const SliceQuery&) const = 0;
  virtual std::optional<SliceView> slice_of(pid_t) const = 0;  // The process's slice.
  virtual std::vector<DeviceView> devices() const = 0;
  virtual NodeView node() const = 0;
  virtual EventLog& events() = 0;
  // Returns at most `most` usage records with ids above this one, including ended ones, from the store.
  virtual Outcome<std::vector<ledger::UsageRecord>> usage_after(uint64_t id, size_t most) const = 0;
  // Returns the usage records with these ids.
  virtual Outcome<std::vector<ledger::UsageRecord>> usage_of(const std::vector<uint64_t>& ids) const = 0;
  // Returns the arbiters' spans that ended since this time, oldest first.
  virtual std::vector<TraceSpan> trace(int64_t since_monotonic_ns) const = 0;
};

}  // namespace carve::node
