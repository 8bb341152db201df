// Documents of the API, version 1: slices. Memory is in whole bytes, shares are
// basis points (1/100 of a percent), times are UTC nanoseconds since 1970; names end in the unit. Texts are
// for display only.
#pragma once

#include "core/enforcement.h"
#include "core/slice.h"
#include "core/violation.h"
#include "core/xid.h"
#include "wire/api/event.h"

namespace carve::api {

// A part of a slice that was placed elsewhere.
struct PlacedPart {
  std::string device;         // The whole UUID.
  uint64_t memory_bytes = 0;  // 0 with `exclusive`: all that is usable.
  uint32_t share_bp = 0;      // 0: no share.
};

// POST /v1/slices, POST /v1/explain. Exactly one of memory_bytes, memory_bp, total_memory_bytes, memory_units
// and placed, or none of them with `exclusive`.
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
  bool exclusive = false;            // Whole devices.
  std::string device;                // An index, a UUID or a unique prefix of one; empty: any.
  std::optional<Strategy> strategy;  // binpack or spread; absent: the agent's.
  std::optional<Policy> policy;      // Absent: the device's.
  LatencyClass latency_class = LatencyClass::batch;
  std::optional<Isolation> isolation;  // Absent: memory, and compute with a share.
  Lifetime lifetime =
      Lifetime::processes;  // explicit: the slice stays without processes, and gets a CDI device.
  std::string account;      // Who pays; empty: the caller's user name.
  std::map<std::string, std::string> labels;
  std::optional<uint32_t> memory_units;  // Per device, in the node's memory unit.
  std::optional<uint32_t> owner_uid;     // Other than the caller's own: for operators only.
  std::string application;  // The application that this is a replica of; replicas go to different devices if
                            // possible.
  std::vector<PlacedPart> placed;  // Decided elsewhere: the agent checks its rules and chooses no device.
  std::string slot;                // "s017": the device plugin's slot of the container; empty: none.
  std::optional<Holder> holder;    // The container of a pod, or the claim, on Kubernetes: for operators only.
};

// PATCH /v1/slices/NAME: the new terms; an absent field does not change.
struct SliceChange {
  std::optional<uint64_t> memory_bytes;  // Per device.
  std::optional<uint32_t> share_bp;      // Per device.
  std::optional<Policy> policy;
  std::optional<LatencyClass> latency_class;

  friend bool operator==(const SliceChange&, const SliceChange&) = default;
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
};

// A slice's part of one device.
struct SlicePart {
  uint32_t index = 0;  // Of the device.
  std::string uuid;
  std::string device_name;  // At the grant.
  uint64_t quota_bytes = 0;
  uint64_t usable_bytes = 0;   // Of the device, at the grant.
  uint64_t native_bytes = 0;   // Of the device, at the grant.
  uint64_t charged_bytes = 0;  // Bytes that count against the quota now.
  uint64_t used_bytes = 0;     // Driver-reported bytes of the slice's processes.
  uint64_t peak_bytes = 0;     // The largest number of bytes charged.
  uint32_t share_bp = 0;       // 0: none requested.
  uint64_t spill_bytes = 0;    // Limit of managed bytes in host memory beyond the quota.
  uint32_t utilization_percent =
      0;                       // Driver-reported: part of its last period in which the slice's kernels ran.
  uint64_t spilled_bytes = 0;  // Managed bytes in host memory now.
  std::optional<PartCompute> compute;  // Present if the device is arbitrated.
};

struct Process {
  uint32_t pid = 0;
  uint32_t inner_pid = 0;  // In its own pid namespace.
  std::string command;
  bool attached = false;    // The guest library registered the process.
  uint64_t used_bytes = 0;  // Over all devices, as the driver reports it.
};

// The terms of a slice from one moment to another. Amounts are per device.
struct Period {
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;  // 0: until now.
  uint64_t memory_bytes = 0;
  uint32_t share_bp = 0;
  Policy policy = Policy::fixed_share;
  LatencyClass latency_class = LatencyClass::batch;
  Isolation isolation = Isolation::memory;
};

// What enforces a slice's limits. With several devices it is the weakest of them.
struct SliceEnforcement {
  Enforcement memory;
  Enforcement compute;
};

// GET /v1/slices/NAME; GET /v1/slices -> SliceList (without processes, history and events)
struct Slice {
  std::string name;
  SliceState state = SliceState::granted;
  uint32_t owner_uid = 0;
  std::string command;  // The slice's program.
  std::string account;
  std::map<std::string, std::string> labels;
  Lifetime lifetime = Lifetime::processes;
  MemoryUnits memory_units;  // As the memory was requested; a count of 0: not in units.
  bool exclusive = false;
  std::string application;                  // The application that this is a replica of; empty: none.
  Isolation isolation = Isolation::memory;  // Requested.
  SliceEnforcement enforcement;             // In force.
  Policy policy = Policy::fixed_share;
  LatencyClass latency_class = LatencyClass::batch;
  std::optional<Holder> holder;  // Absent: the slice is not of Kubernetes.
  std::string slot;              // Where its containers attach: "s017"; empty: at the common attach socket.
  uint64_t created_ns = 0;
  uint64_t ended_ns = 0;
  std::string ended_because;
  std::vector<XidCount> xids;         // Errors (Xid) that its processes caused, since the agent started.
  std::vector<Violation> violations;  // How it broke its limits, since the agent started.
  uint64_t refused_ns = 0;            // When its quota last refused memory to a call, UTC; 0: never.
  std::vector<SlicePart> parts;
  std::vector<Process> processes;
  std::vector<Period> history;  // Oldest first; the last one has the present or the final terms.
  std::vector<Event> events;
};

struct SliceList {
  std::vector<Slice> slices;
};

// POST /v1/slices/NAME/enter: the calling process becomes the slice's program. The answer has the environment
// to set before the program is executed, and how the agent will identify its descendants.
struct EnterRequest {
  std::string command;          // For display only.
  std::string visible_devices;  // The caller's CUDA_VISIBLE_DEVICES, which the agent intersects with the
                                // slice's devices.
  bool visible_devices_set = false;
};

struct Entered {
  std::map<std::string, std::string>
      environment;      // To set. LD_PRELOAD and LD_LIBRARY_PATH are put in front of the present values.
  bool cgroup = false;  // False: the supervisor must stay as subreaper until the last descendant has ended.
};

// A file or folder of the node as a container has it.
struct ContainerMount {
  std::string host_path;
  std::string container_path;
  bool writable = false;
};

// GET /v1/slots/SLOT: what a container of the slot needs from a runtime without CDI. The devices are those of
// the whole node, because the slot's slice is not known yet.
struct SlotFiles {
  std::vector<ContainerMount> mounts;
  std::vector<std::string> device_nodes;  // "/dev/nvidia0"
};

// POST /v1/slices/NAME/container: the runtime started a container with this slice.
struct ContainerStarted {
  uint32_t pid = 0;  // Of its first process, in the agent's pid namespace.
  std::string id;    // The runtime's name for the container, for display.
};

}  // namespace carve::api
