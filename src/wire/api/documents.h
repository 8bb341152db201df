// The documents of the agent's API, version 1, which the CLI, the console and all other clients read. Memory
// is in whole bytes, shares are basis points (1/100 of a percent), times are UTC nanoseconds since 1970;
// names end in the unit. Texts are for display only. FORMAT.md lists the routes.
#pragma once

#include "wire/api/json.h"

namespace carve::api {

// RFC 9457: a failure, for programs (`type`, `status`) and for users (`title`, `detail`).
struct Problem {
  std::string type = "about:blank";  // "carve:already-exists", "carve:insufficient-capacity", ...; stable.
  std::string title;                 // The kind of failure, the same for each type.
  uint32_t status = 500;             // The HTTP status.
  std::string detail;                // This occurrence: the thing, the value, the way out.
  std::vector<std::string> reasons;  // One per device, if a request did not fit.
  static void fields(auto& self, auto&& field) {
    field("type", self.type);
    field("title", self.title);
    field("status", self.status);
    field("detail", self.detail);
    field("reasons", self.reasons);
  }
};

// GET /v1/version
struct Version {
  std::string version;    // "0.1.0"
  uint32_t pid = 0;       // Of the agent.
  std::string simulated;  // The set's specification ("a10x2"); empty on real devices.
  std::string socket;     // Path of the API's socket.
  std::string state;      // Directory of the ledger.
  uint64_t started_ns = 0;
  uint32_t layout = 0;  // Version of the shared memory layout (wire/shm).
  static void fields(auto& self, auto&& field) {
    field("version", self.version);
    field("pid", self.pid);
    field("simulated", self.simulated);
    field("socket", self.socket);
    field("state", self.state);
    field("started_ns", self.started_ns);
    field("layout", self.layout);
  }
};

// A setting that may take effect later than it is changed.
struct Setting {
  std::string desired;
  std::string effective;
  std::string blocked_by;  // Names of slices; empty if both values are equal.
  static void fields(auto& self, auto&& field) {
    field("desired", self.desired);
    field("effective", self.effective);
    field("blocked_by", self.blocked_by);
  }
};

// The figures of a device's arbiter.
struct DeviceCompute {
  uint32_t idle_1s_bp = 0;  // Idle part of the last second.
  uint64_t switch_ns = 0;   // Cost of one switch between slices.
  uint64_t switches = 0;    // Switches since the agent started.
  static void fields(auto& self, auto&& field) {
    field("idle_1s_bp", self.idle_1s_bp);
    field("switch_ns", self.switch_ns);
    field("switches", self.switches);
  }
};

// GET /v1/node, PATCH /v1/node with NodeChange
struct Node {
  Setting policy;  // Of all devices; effective is "mixed" while only some devices have changed.
  bool policy_per_slice = false;   // Slices of one device may follow different policies.
  bool admit_best_effort = false;  // Slices without a share are admitted beside enforced ones.
  bool overcommit_compute = false;
  std::map<std::string, std::string> labels;
  static void fields(auto& self, auto&& field) {
    field("policy", self.policy);
    field("policy_per_slice", self.policy_per_slice);
    field("admit_best_effort", self.admit_best_effort);
    field("overcommit_compute", self.overcommit_compute);
    field("labels", self.labels);
  }
};

struct NodeChange {
  std::string policy;
  static void fields(auto& self, auto&& field) { field("policy", self.policy); }
};

// GET /v1/devices -> DeviceList
struct Device {
  uint32_t index = 0;  // NVML's index.
  std::string uuid;    // "GPU-..."
  std::string name;    // "NVIDIA A10"
  bool simulated = false;
  std::string health;         // "ok", or a description of the fault.
  uint64_t native_bytes = 0;  // As the driver reports it.
  uint64_t reserved_bytes = 0;
  uint64_t usable_bytes = 0;   // native - reserved; quotas and invoices count against it.
  uint64_t granted_bytes = 0;  // Granted to slices.
  uint64_t free_bytes = 0;     // usable - granted.
  uint64_t used_bytes = 0;     // In use by all processes, as the driver reports it.
  uint64_t context_bytes = 0;  // Measured size of one context; 0: not measured.
  uint32_t share_granted_bp = 0;
  uint32_t utilization_percent = 0;
  uint32_t slices = 0;
  uint32_t max_slices = 0;
  std::string exclusive_to;  // The slice that holds the whole device, or empty.
  Setting policy;
  std::string compute;     // How shares are enforced: "library"; "not enforced: NAME" with the slices that
                           // are not arbitrated; empty: no slice has an enforced share.
  std::string commitment;  // "tight", "over-committed"; empty: all shares can be met.
  std::optional<DeviceCompute> arbitration;  // Present if a share on the device is enforced.
  std::vector<std::string>
      unmanaged_processes;  // Processes on this shared device that are in no slice, each as a sentence.
  static void fields(auto& self, auto&& field) {
    field("index", self.index);
    field("uuid", self.uuid);
    field("name", self.name);
    field("simulated", self.simulated);
    field("health", self.health);
    field("native_bytes", self.native_bytes);
    field("reserved_bytes", self.reserved_bytes);
    field("usable_bytes", self.usable_bytes);
    field("granted_bytes", self.granted_bytes);
    field("free_bytes", self.free_bytes);
    field("used_bytes", self.used_bytes);
    field("context_bytes", self.context_bytes);
    field("share_granted_bp", self.share_granted_bp);
    field("utilization_percent", self.utilization_percent);
    field("slices", self.slices);
    field("max_slices", self.max_slices);
    field("exclusive_to", self.exclusive_to);
    field("policy", self.policy);
    field("compute", self.compute);
    field("commitment", self.commitment);
    field("arbitration", self.arbitration);
    field("unmanaged_processes", self.unmanaged_processes);
  }
};

struct DeviceList {
  std::vector<Device> devices;
  static void fields(auto& self, auto&& field) { field("devices", self.devices); }
};

// POST /v1/slices, POST /v1/explain. Exactly one of memory_bytes, memory_bp and total_memory_bytes, or none
// of them with `exclusive`.
struct SliceRequest {
  std::string request_id;                      // A repeated id grants once.
  std::string name;                            // Empty: the agent chooses one.
  std::optional<uint64_t> memory_bytes;        // Per device.
  std::optional<uint32_t> memory_bp;           // Per device, in basis points of its usable memory.
  std::optional<uint64_t> total_memory_bytes;  // Over all devices, divided equally.
  std::optional<uint32_t> share_bp;            // Compute per device; absent: no share.
  std::string oversubscribe;  // "managed": spill_bytes per device may be in host memory; empty: no spill.
  uint64_t spill_bytes = 0;
  uint32_t devices = 1;
  bool exclusive = false;  // Whole devices.
  std::string device;      // An index, a UUID or a unique prefix of one; empty: any.
  std::string strategy;    // "binpack", "spread"; empty: the agent's.
  std::string policy;  // "fixed-share", "guaranteed-burst-share", "native-burst-share"; empty: the device's.
  bool latency = false;     // Latency class instead of batch.
  std::string isolation;    // "none", "memory", "memory+compute"; empty: memory, and compute with a share.
  bool container = false;   // The slice stays without processes, and gets a CDI device.
  std::string application;  // The application that this is a replica of; replicas go to different devices if
                            // possible.
  static void fields(auto& self, auto&& field) {
    field("request_id", self.request_id);
    field("name", self.name);
    field("memory_bytes", self.memory_bytes);
    field("memory_bp", self.memory_bp);
    field("total_memory_bytes", self.total_memory_bytes);
    field("share_bp", self.share_bp);
    field("oversubscribe", self.oversubscribe);
    field("spill_bytes", self.spill_bytes);
    field("devices", self.devices);
    field("exclusive", self.exclusive);
    field("device", self.device);
    field("strategy", self.strategy);
    field("policy", self.policy);
    field("latency", self.latency);
    field("isolation", self.isolation);
    field("container", self.container);
    field("application", self.application);
  }
};

// PATCH /v1/slices/NAME: the new terms; an absent field does not change.
struct SliceChange {
  std::optional<uint64_t> memory_bytes;  // Per device.
  std::optional<uint32_t> share_bp;      // Per device.
  std::optional<std::string> policy;
  std::optional<bool> latency;
  static void fields(auto& self, auto&& field) {
    field("memory_bytes", self.memory_bytes);
    field("share_bp", self.share_bp);
    field("policy", self.policy);
    field("latency", self.latency);
  }
};

// The use of a device's compute by a slice. Shares are over the window in the name; times and counts are
// since the agent started.
struct PartCompute {
  uint64_t as_of_ns = 0;  // CLOCK_MONOTONIC, for all fields below.
  uint32_t granted_bp = 0;
  uint32_t achieved_1s_bp = 0;
  uint32_t achieved_60s_bp = 0;
  uint64_t busy_ns = 0;       // Charged time: the slice's work and the switches to it.
  uint64_t waiting_ns = 0;    // Contended: it had work and another slice held the device.
  uint64_t throttled_ns = 0;  // It had work, the device was free, and its own share was used up.
  uint64_t burst_ns = 0;      // Charged time beyond its share.
  uint64_t waits = 0;
  uint64_t wait_p50_ns = 0;  // Of the last 1,000 waits.
  uint64_t wait_p99_ns = 0;
  uint64_t overruns = 0;  // Drains that reached their time limit.
  uint64_t leases = 0;
  // Bytes of copies, as the processes report them; not charged. For the whole slice, with its first device.
  uint64_t copied_to_device_bytes = 0;
  uint64_t copied_to_host_bytes = 0;
  uint64_t copied_on_device_bytes = 0;
  static void fields(auto& self, auto&& field) {
    field("as_of_ns", self.as_of_ns);
    field("granted_bp", self.granted_bp);
    field("achieved_1s_bp", self.achieved_1s_bp);
    field("achieved_60s_bp", self.achieved_60s_bp);
    field("busy_ns", self.busy_ns);
    field("waiting_ns", self.waiting_ns);
    field("throttled_ns", self.throttled_ns);
    field("burst_ns", self.burst_ns);
    field("waits", self.waits);
    field("wait_p50_ns", self.wait_p50_ns);
    field("wait_p99_ns", self.wait_p99_ns);
    field("overruns", self.overruns);
    field("leases", self.leases);
    field("copied_to_device_bytes", self.copied_to_device_bytes);
    field("copied_to_host_bytes", self.copied_to_host_bytes);
    field("copied_on_device_bytes", self.copied_on_device_bytes);
  }
};

// A slice's part of one device.
struct SlicePart {
  uint32_t index = 0;  // Of the device.
  std::string uuid;
  std::string device_name;
  uint64_t quota_bytes = 0;
  uint64_t charged_bytes = 0;          // Bytes that count against the quota now.
  uint64_t used_bytes = 0;             // Driver-reported bytes of the slice's processes.
  uint64_t peak_bytes = 0;             // The largest number of bytes charged.
  uint32_t share_bp = 0;               // 0: none requested.
  uint64_t spill_bytes = 0;            // Limit of managed bytes in host memory beyond the quota.
  uint64_t spilled_bytes = 0;          // Managed bytes in host memory now.
  std::optional<PartCompute> compute;  // Present if the device is arbitrated.
  static void fields(auto& self, auto&& field) {
    field("index", self.index);
    field("uuid", self.uuid);
    field("device_name", self.device_name);
    field("quota_bytes", self.quota_bytes);
    field("charged_bytes", self.charged_bytes);
    field("used_bytes", self.used_bytes);
    field("peak_bytes", self.peak_bytes);
    field("share_bp", self.share_bp);
    field("spill_bytes", self.spill_bytes);
    field("spilled_bytes", self.spilled_bytes);
    field("compute", self.compute);
  }
};

struct Process {
  uint32_t pid = 0;
  uint32_t inner_pid = 0;  // In its own pid namespace.
  std::string command;
  bool attached = false;    // The guest library registered the process.
  uint64_t used_bytes = 0;  // Over all devices, as the driver reports it.
  static void fields(auto& self, auto&& field) {
    field("pid", self.pid);
    field("inner_pid", self.inner_pid);
    field("command", self.command);
    field("attached", self.attached);
    field("used_bytes", self.used_bytes);
  }
};

struct Event {
  uint64_t time_ns = 0;
  std::string slice;  // Empty: the agent as a whole.
  std::string text;
  static void fields(auto& self, auto&& field) {
    field("time_ns", self.time_ns);
    field("slice", self.slice);
    field("text", self.text);
  }
};

// The terms of a slice from one moment to another. Amounts are per device.
struct Period {
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;  // 0: until now.
  uint64_t memory_bytes = 0;
  uint32_t share_bp = 0;
  std::string policy;
  bool latency = false;
  std::string isolation;
  static void fields(auto& self, auto&& field) {
    field("from_ns", self.from_ns);
    field("to_ns", self.to_ns);
    field("memory_bytes", self.memory_bytes);
    field("share_bp", self.share_bp);
    field("policy", self.policy);
    field("latency", self.latency);
    field("isolation", self.isolation);
  }
};

// GET /v1/slices/NAME; GET /v1/slices -> SliceList (without processes, history and events)
struct Slice {
  std::string name;
  std::string state;  // "granted" (no process yet), "running", "lingering" (the program ended, its
                      // descendants run on), "frozen" (by the audit), "ended".
  uint32_t owner_uid = 0;
  std::string command;  // The slice's program.
  bool container = false;
  bool exclusive = false;
  std::string application;  // The application that this is a replica of; empty: none.
  std::string isolation;    // Requested: "none", "memory", "memory+compute".
  std::string enforcement;  // In force: "none", "library".
  std::string policy;
  bool latency = false;
  std::string compute;  // How its share is enforced: "library", or "not enforced: ..." with the reason;
                        // empty: it has no share to enforce.
  uint64_t created_ns = 0;
  uint64_t ended_ns = 0;
  std::string ended_because;
  std::vector<SlicePart> parts;
  std::vector<Process> processes;
  std::vector<Period> history;  // Oldest first; the last one has the present or the final terms.
  std::vector<Event> events;
  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("state", self.state);
    field("owner_uid", self.owner_uid);
    field("command", self.command);
    field("container", self.container);
    field("exclusive", self.exclusive);
    field("application", self.application);
    field("isolation", self.isolation);
    field("enforcement", self.enforcement);
    field("policy", self.policy);
    field("latency", self.latency);
    field("compute", self.compute);
    field("created_ns", self.created_ns);
    field("ended_ns", self.ended_ns);
    field("ended_because", self.ended_because);
    field("parts", self.parts);
    field("processes", self.processes);
    field("history", self.history);
    field("events", self.events);
  }
};

struct SliceList {
  std::vector<Slice> slices;
  static void fields(auto& self, auto&& field) { field("slices", self.slices); }
};

// POST /v1/slices/NAME/enter: the calling process becomes the slice's program. The answer has the environment
// to set before the program is executed, and how the agent will identify its descendants.
struct EnterRequest {
  std::string command;          // For display only.
  std::string visible_devices;  // The caller's CUDA_VISIBLE_DEVICES, which the agent intersects with the
                                // slice's devices.
  bool visible_devices_set = false;
  static void fields(auto& self, auto&& field) {
    field("command", self.command);
    field("visible_devices", self.visible_devices);
    field("visible_devices_set", self.visible_devices_set);
  }
};

struct Entered {
  std::map<std::string, std::string>
      environment;      // To set. LD_PRELOAD and LD_LIBRARY_PATH are put in front of the present values.
  bool cgroup = false;  // False: the supervisor must stay as subreaper until the last descendant has ended.
  static void fields(auto& self, auto&& field) {
    field("environment", self.environment);
    field("cgroup", self.cgroup);
  }
};

// POST /v1/slices/NAME/container: the runtime started a container with this slice.
struct ContainerStarted {
  uint32_t pid = 0;  // Of its first process, in the agent's pid namespace.
  std::string id;    // The runtime's name for the container, for display.
  static void fields(auto& self, auto&& field) {
    field("pid", self.pid);
    field("id", self.id);
  }
};

// POST /v1/explain -> Explanation: the placement of this request, without granting it.
struct Verdict {
  uint32_t index = 0;
  std::string uuid;
  bool fits = false;
  std::string sentence;  // The reason for the answer.
  static void fields(auto& self, auto&& field) {
    field("index", self.index);
    field("uuid", self.uuid);
    field("fits", self.fits);
    field("sentence", self.sentence);
  }
};

struct Explanation {
  bool fits = false;
  std::string sentence;
  std::vector<uint32_t> chosen;  // Device indexes.
  std::vector<Verdict> devices;
  static void fields(auto& self, auto&& field) {
    field("fits", self.fits);
    field("sentence", self.sentence);
    field("chosen", self.chosen);
    field("devices", self.devices);
  }
};

// GET /v1/consolidation?devices=K: the moves that would empty K more devices. No slice is moved.
struct ConsolidationMove {  // A slice of several devices has one for each device that it leaves.
  std::string slice;
  uint32_t from = 0;  // Device indexes.
  uint32_t to = 0;
  uint64_t memory_bytes = 0;  // Bytes to move.
  uint32_t share_bp = 0;
  static void fields(auto& self, auto&& field) {
    field("slice", self.slice);
    field("from", self.from);
    field("to", self.to);
    field("memory_bytes", self.memory_bytes);
    field("share_bp", self.share_bp);
  }
};

struct ConsolidationPlan {
  uint32_t wanted = 0;
  std::vector<uint32_t> emptied;         // Device indexes; fewer than `wanted` if no plan was found.
  std::vector<ConsolidationMove> moves;  // In an order in which each move fits when it is made.
  uint64_t moved_bytes = 0;
  static void fields(auto& self, auto&& field) {
    field("wanted", self.wanted);
    field("emptied", self.emptied);
    field("moves", self.moves);
    field("moved_bytes", self.moved_bytes);
  }
};

// GET /v1/doctor
struct Check {
  std::string name;
  std::string status;  // "ok", "degraded", "failed"
  std::string detail;  // The finding.
  std::string fix;     // The way to "ok"; empty if there is nothing to fix.
  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("status", self.status);
    field("detail", self.detail);
    field("fix", self.fix);
  }
};

struct Diagnosis {
  std::string isolation;  // The active enforcement: "memory: library, compute: library".
  std::vector<Check> checks;
  static void fields(auto& self, auto&& field) {
    field("isolation", self.isolation);
    field("checks", self.checks);
  }
};

// An empty body, in a request or an answer.
struct Nothing {
  static void fields(auto&, auto&&) {}
};

// GET /v1/events
struct EventList {
  std::vector<Event> events;
  static void fields(auto& self, auto&& field) { field("events", self.events); }
};

}  // namespace carve::api
