// Documents of the API, version 1: slices. Memory is in whole bytes, shares are basis points (1/100 of a
// percent), times are UTC nanoseconds since 1970; names end with the unit. Free text is only for display.
#pragma once

#include "core/amounts.h"
#include "core/enforcement.h"
#include "core/slice.h"
#include "core/violation.h"
#include "core/xid.h"
#include "wire/api/event.h"
#include "wire/api/json.h"

namespace carve::api {

// A slice part that was placed elsewhere.
struct PlacedPart {
  std::string device;         // The whole UUID.
  uint64_t memory_bytes = 0;  // 0 with `exclusive`, which means all usable memory.
  uint32_t share_bp = 0;      // 0 means no share.
};

// POST /v1/slices, POST /v1/explain. The request has either `placed` or one form of memory in the amounts;
// with `exclusive` it may have neither.
struct SliceRequest {
  std::string request_id;     // A request with a repeated id is granted only once.
  std::string name;           // If empty, the agent chooses one.
  Amounts amounts;            // Its fields are fields of this document. The strategy is binpack or spread.
  std::string oversubscribe;  // "managed" allows amounts.spill_bytes in host memory. Empty: no spill.
  // An index, a UUID, or a unique prefix of one. If several are given, separated by commas, the slice gets
  // one of them. Empty means that all devices are allowed.
  std::string device;
  Lifetime lifetime =
      Lifetime::processes;  // explicit: the slice remains without processes, and gets a CDI device.
  std::string account;      // The account that pays. If empty, the caller's user name.
  std::map<std::string, std::string> labels;
  std::optional<uint32_t> owner_uid;  // An owner other than the caller; only for operators.
  std::string application;  // The application that this is a replica of; replicas go to different devices if
                            // possible.
  std::vector<PlacedPart> placed;  // Decided elsewhere: the agent checks its rules and chooses no device.
  std::string slot;                // "s017": the container's slot of the device plugin. Empty if none.
  std::optional<Holder> holder;    // The pod's container, or the claim, on Kubernetes; only for operators.
};

// PATCH /v1/slices/NAME: the new terms; absent fields stay unchanged.
struct SliceChange {
  std::optional<uint64_t> memory_bytes;  // Per device.
  std::optional<uint32_t> share_bp;      // Per device.
  std::optional<Policy> policy;
  std::optional<LatencyClass> latency_class;

  friend bool operator==(const SliceChange&, const SliceChange&) = default;
};

// A neighbour that held the device while a slice waited for it.
struct WaitFor {
  std::string slice;  // Name of the neighbour; "another user's slice" if the caller may not see it.
  uint64_t waiting_ns = 0;
};

// A slice's use of a device's compute. Shares cover the time in their name; times and counts cover the time
// since the agent started.
struct PartCompute {
  uint64_t as_of_ns = 0;  // CLOCK_MONOTONIC, for all fields below.
  uint32_t granted_bp = 0;
  uint32_t achieved_1s_bp = 0;
  uint32_t achieved_60s_bp = 0;
  uint64_t busy_ns = 0;       // Charged time: the slice's work and the switches to it.
  uint64_t waiting_ns = 0;    // Contended: it had work while another slice held the device.
  uint64_t throttled_ns = 0;  // It had work, the device was free, and its own share was used up.
  uint64_t burst_ns = 0;      // Charged time beyond its share.
  uint64_t waits = 0;
  uint64_t wait_p50_ns = 0;  // Median of the last 1,000 waits.
  uint64_t wait_p99_ns = 0;
  uint64_t overruns = 0;  // Drains that reached their time limit.
  uint64_t leases = 0;
  // Bytes of copies as the processes report them; not charged. The first device has the bytes of the whole
  // slice.
  uint64_t copied_to_device_bytes = 0;
  uint64_t copied_to_host_bytes = 0;
  uint64_t copied_on_device_bytes = 0;
  // Time that the work of the last minute took, waiting and throttling included, over the time that it takes
  // alone on the device: 10000 without an effect; 0 if there was no work.
  uint32_t slowdown_60s_bp = 0;
  std::vector<WaitFor> waits_60s;  // The contended time of the last minute by neighbour, longest first.
};

// A slice's part of one device.
struct SlicePart {
  uint32_t index = 0;  // The device's index.
  std::string uuid;
  std::string device_name;  // As of the grant.
  uint64_t quota_bytes = 0;
  uint64_t usable_bytes = 0;   // The device's, as of the grant.
  uint64_t native_bytes = 0;   // The device's, as of the grant.
  uint64_t charged_bytes = 0;  // Bytes that count against the quota now.
  uint64_t used_bytes = 0;     // Driver-reported bytes of the slice's processes.
  uint64_t peak_bytes = 0;     // The most bytes that were ever charged.
  uint32_t share_bp = 0;       // 0 if no share was requested.
  uint64_t spill_bytes = 0;    // Limit of managed bytes in host memory beyond the quota.
  uint32_t utilization_percent =
      0;                       // Driver-reported: part of its last period in which kernels of the slice ran.
  uint64_t spilled_bytes = 0;  // Managed bytes in host memory now.
  std::optional<uint64_t> energy_millijoules;  // Its part of the device's energy. Absent if not reported.
  std::optional<PartCompute> compute;          // Present if the device is arbitrated.
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
  uint64_t to_ns = 0;  // 0 means until now.
  uint64_t memory_bytes = 0;
  uint32_t share_bp = 0;
  Policy policy = Policy::fixed_share;
  LatencyClass latency_class = LatencyClass::batch;
  Isolation isolation = Isolation::memory;
};

// The enforcement of a slice's limits. With several devices it is that of the device with the lowest level.
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
  MemoryUnits memory_units;  // As the memory was requested. A count of 0 means that it was not in units.
  bool exclusive = false;
  std::string application;                  // The application that this is a replica of. Empty if none.
  Isolation isolation = Isolation::memory;  // Requested.
  SliceEnforcement enforcement;             // In force.
  Policy policy = Policy::fixed_share;
  LatencyClass latency_class = LatencyClass::batch;
  std::optional<Holder> holder;  // Absent if the slice does not belong to Kubernetes.
  std::string slot;              // The slot through which its container attaches: "s017". Empty if none.
  std::vector<ClaimPod> pods;    // The pods that may use its claim.
  std::vector<std::string> unknown_pods;  // Uids of pods whose processes wait to be looked up (POST pods).
  uint64_t created_ns = 0;
  uint64_t ended_ns = 0;
  std::string ended_because;
  std::vector<XidCount> xids;         // Errors (Xid) that its processes have caused since the agent started.
  std::vector<Violation> violations;  // Limits that it has violated since the agent started.
  uint64_t refused_ns = 0;            // Time (UTC) at which its quota last refused memory; 0 if never.
  uint64_t idle_seconds = 0;  // Since a kernel of it last ran, or since its grant or the agent's start.
  std::vector<SlicePart> parts;
  std::vector<Process> processes;
  std::vector<Period> history;  // Oldest first; the last entry has the current or final terms.
  std::vector<Event> events;
};

struct SliceList {
  std::vector<Slice> slices;
};

// POST /v1/slices/NAME/enter: the calling process becomes the slice's program. The response has the
// environment to set before the program is executed, and how the agent will identify its descendants.
struct EnterRequest {
  std::string command;          // Only for display.
  std::string visible_devices;  // The caller's CUDA_VISIBLE_DEVICES, which the agent intersects with the
                                // slice's devices.
  bool visible_devices_set = false;
  bool joins = false;  // The slice's program must be running, and the caller becomes another process of it.
};

struct Entered {
  std::map<std::string, std::string>
      environment;      // Variables to set. LD_PRELOAD and LD_LIBRARY_PATH are prepended to existing values.
  bool cgroup = false;  // If false, the supervisor must remain subreaper until the last descendant ends.
};

// A file or folder of the node as mounted in a container.
struct ContainerMount {
  std::string host_path;
  std::string container_path;
  bool writable = false;
};

// GET /v1/slots/SLOT: the files for a container of the slot with a runtime without CDI. The devices are all
// devices of the node, because the slot's slice is not known yet.
struct SlotFiles {
  std::vector<ContainerMount> mounts;
  std::vector<std::string> device_nodes;  // "/dev/nvidia0"
};

// POST /v1/slices/NAME/container: reports that the runtime has started a container with this slice.
struct ContainerStarted {
  uint32_t pid = 0;     // Its first process, in the agent's pid namespace.
  std::string id;       // The runtime's name for the container, for display.
  std::string refusal;  // Why the container's processes do not get the slice. Empty if they do.
};

// POST /v1/slices/NAME/pods: the pods that may use the slice's claim. They replace the earlier ones.
struct ClaimPods {
  std::vector<ClaimPod> pods;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::SliceRequest)
CARVE_DECLARE_DOCUMENT(api::SliceChange)
CARVE_DECLARE_DOCUMENT(api::Slice)
CARVE_DECLARE_DOCUMENT(api::SliceList)
CARVE_DECLARE_DOCUMENT(api::EnterRequest)
CARVE_DECLARE_DOCUMENT(api::Entered)
CARVE_DECLARE_DOCUMENT(api::ContainerMount)
CARVE_DECLARE_DOCUMENT(api::SlotFiles)
CARVE_DECLARE_DOCUMENT(api::ContainerStarted)
CARVE_DECLARE_DOCUMENT(api::ClaimPods)
