// All metric families of Carve's programs: names, types, units, labels and help. Programs write samples only
// for rows of this table (exposition.h), and docs/metrics.md is generated from it: to add a family, add a row,
// write its samples, and run wire_api_documents_test with CARVE_WRITE_PAGES=1. Names follow Prometheus'
// conventions: base units, and _total for counters. Rows that begin with DCGM_ have the names, units and labels
// of NVIDIA's dcgm-exporter, so that existing dashboards work.
//
// The number of series is bounded by what exists now: devices, live slices, objects. No label has a value that
// changes with time, and an ended slice or a deleted object has no series.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace carve::api {

enum class MetricType : uint8_t { gauge, counter, histogram, summary };

// Names of labels in the order in which they are written; the rest are empty.
inline constexpr size_t max_metric_labels = 12;
using LabelNames = std::array<std::string_view, max_metric_labels>;

// The programs that write a family, as bits.
using MetricWriters = uint8_t;
inline constexpr MetricWriters agent_writes = 1, controller_writes = 2, kubelet_writes = 4,
                               coordinator_writes = 8;

struct MetricFamily {
  std::string_view name;  // Of its samples in Prometheus' text format.
  MetricType type;
  std::string_view unit;  // Part of the name; empty for a number, a state or DCGM's units.
  LabelNames labels;
  MetricWriters writers;
  std::string_view help;
};

namespace metric_labels {
inline constexpr LabelNames none = {};
inline constexpr LabelNames device = {"device", "uuid"};
inline constexpr LabelNames slice = {"slice", "namespace", "pod", "container", "account"};
inline constexpr LabelNames part = {"slice", "device", "uuid", "namespace", "pod", "container", "account"};
inline constexpr LabelNames dcgm = {"gpu",        "UUID",      "device", "modelName", "Hostname",
                                    "pci_bus_id", "namespace", "pod",    "container"};
inline constexpr LabelNames build = {"version", "simulated"};
inline constexpr LabelNames state = {"state"};
inline constexpr LabelNames enforcement = {"memory"};
inline constexpr LabelNames setting = {"setting"};
inline constexpr LabelNames device_info = {"device", "uuid", "model", "policy"};
inline constexpr LabelNames device_xid = {"device", "uuid", "xid"};
inline constexpr LabelNames slice_info = {"slice",   "device", "uuid",  "namespace", "pod",     "container",
                                          "account", "policy", "class", "isolation", "compute", "owner"};
inline constexpr LabelNames slice_xid = {"slice", "namespace", "pod", "container", "account", "xid"};
inline constexpr LabelNames slice_kind = {"slice", "namespace", "pod", "container", "account", "kind"};
inline constexpr LabelNames service_code = {"namespace", "service", "code"};
inline constexpr LabelNames service = {"namespace", "service"};
inline constexpr LabelNames service_state = {"namespace", "service", "state"};
inline constexpr LabelNames queue = {"queue"};
inline constexpr LabelNames queue_state = {"queue", "state"};
inline constexpr LabelNames pool = {"pool"};
inline constexpr LabelNames account = {"account", "queue"};
inline constexpr LabelNames budget = {"budget", "account"};
inline constexpr LabelNames version = {"version"};
inline constexpr LabelNames resource = {"resource"};
inline constexpr LabelNames verb = {"verb"};
inline constexpr LabelNames result = {"result"};
inline constexpr LabelNames review = {"dialect", "result"};
}  // namespace metric_labels

inline constexpr MetricType gauge = MetricType::gauge, counter = MetricType::counter;

inline constexpr MetricFamily metric_families[] = {
    // The agent
    {"carve_build_info", gauge, "", metric_labels::build, agent_writes,
     "The agent's version and its simulated devices, always 1."},
    {"carve_node_state", gauge, "", metric_labels::state, agent_writes,
     "1 for the state of the node, else 0: Starting, Running, Stopped (new slices are refused)."},
    {"carve_node_enforcement", gauge, "", metric_labels::enforcement, agent_writes,
     "What enforces memory limits on the node: library or kernel (guard.md); always 1."},
    {"carve_setting_pending", gauge, "", metric_labels::setting,
     agent_writes | kubelet_writes | coordinator_writes, "1 if a setting has not taken effect yet, else 0."},
    {"carve_driver_samples_total", counter, "", metric_labels::none, agent_writes,
     "Samples of each process's memory and utilization that the driver delivered."},
    {"carve_driver_sample_seconds", gauge, "seconds", metric_labels::none, agent_writes,
     "Duration of the last driver sample."},
    {"carve_agent_loop_longest_turn_seconds", gauge, "seconds", metric_labels::none, agent_writes,
     "Longest turn of the agent's loop since the agent started. During a turn no caller gets a response."},

    // Devices
    {"carve_device_info", gauge, "", metric_labels::device_info, agent_writes,
     "Model and effective policy of the device, always 1."},
    {"carve_device_memory_native_bytes", gauge, "bytes", metric_labels::device, agent_writes,
     "Bytes of the device, as the driver reports them."},
    {"carve_device_memory_usable_bytes", gauge, "bytes", metric_labels::device, agent_writes,
     "Bytes that can be granted to slices: native minus reserved."},
    {"carve_device_memory_granted_bytes", gauge, "bytes", metric_labels::device, agent_writes,
     "Bytes granted to slices."},
    {"carve_device_memory_used_bytes", gauge, "bytes", metric_labels::device, agent_writes,
     "Bytes in use by all processes, as the driver reports them."},
    {"carve_device_healthy", gauge, "", metric_labels::device, agent_writes,
     "1 if the device is healthy, else 0."},
    {"carve_device_temperature_celsius", gauge, "celsius", metric_labels::device, agent_writes,
     "Temperature of the device, as the driver reports it."},
    {"carve_device_power_watts", gauge, "watts", metric_labels::device, agent_writes,
     "Power that the device draws, as the driver reports it."},
    {"carve_device_energy_joules_total", counter, "joules", metric_labels::device, agent_writes,
     "Energy of the device since the driver was loaded, as the driver reports it."},
    {"carve_device_sm_clock_hertz", gauge, "hertz", metric_labels::device, agent_writes,
     "Clock of the multiprocessors, as the driver reports it."},
    {"carve_device_slices", gauge, "", metric_labels::device, agent_writes, "Slices on the device."},
    {"carve_device_unmanaged_processes", gauge, "", metric_labels::device, agent_writes,
     "Processes on the shared device that are in no slice."},
    {"carve_device_utilization_ratio", gauge, "ratio", metric_labels::device, agent_writes,
     "Part of the time in which a kernel ran, as the driver samples it."},
    {"carve_device_compute_granted_ratio", gauge, "ratio", metric_labels::device, agent_writes,
     "Sum of the shares granted on the device."},
    {"carve_device_compute_idle_ratio", gauge, "ratio", metric_labels::device, agent_writes,
     "Part of the last second in which nothing ran."},
    {"carve_device_compute_switches_total", counter, "", metric_labels::device, agent_writes,
     "Switches from one slice to another."},
    {"carve_device_compute_switch_seconds", gauge, "seconds", metric_labels::device, agent_writes,
     "Measured duration of one switch."},
    {"carve_device_xid_total", counter, "", metric_labels::device_xid, agent_writes,
     "Errors (Xid) that the driver reported for the device since the agent started."},

    // Slices
    {"carve_slice_info", gauge, "", metric_labels::slice_info, agent_writes,
     "Policy, latency class, requested isolation, enforcement of the share, and owner, always 1."},
    {"carve_slice_idle_seconds", gauge, "seconds", metric_labels::slice, agent_writes,
     "Time since a kernel of the slice last ran, or since the grant or the agent's start if none has."},
    {"carve_slice_xid_total", counter, "", metric_labels::slice_xid, agent_writes,
     "Errors (Xid) that the slice's processes caused since the agent started."},
    {"carve_slice_violations_total", counter, "", metric_labels::slice_kind, agent_writes,
     "Violations of the slice's limits since the agent started."},
    {"carve_slice_memory_quota_bytes", gauge, "bytes", metric_labels::part, agent_writes,
     "Bytes that the slice may hold on the device."},
    {"carve_slice_memory_charged_bytes", gauge, "bytes", metric_labels::part, agent_writes,
     "Bytes that count against the quota."},
    {"carve_slice_memory_used_bytes", gauge, "bytes", metric_labels::part, agent_writes,
     "Bytes that the driver reports for the slice's processes."},
    {"carve_slice_memory_peak_bytes", gauge, "bytes", metric_labels::part, agent_writes,
     "Largest number of bytes ever charged."},
    {"carve_slice_memory_spilled_bytes", gauge, "bytes", metric_labels::part, agent_writes,
     "Managed bytes beyond the quota that are in host memory."},
    {"carve_slice_energy_joules_total", counter, "joules", metric_labels::part, agent_writes,
     "The slice's part of the device's energy, by its busy time."},
    {"carve_slice_compute_share_ratio", gauge, "ratio", metric_labels::part, agent_writes,
     "Granted share of the device's compute."},
    {"carve_slice_compute_achieved_ratio", gauge, "ratio", metric_labels::part, agent_writes,
     "Achieved share of the device's compute in the last second."},
    {"carve_slice_compute_utilization_ratio", gauge, "ratio", metric_labels::part, agent_writes,
     "Part of the driver's last sampling period in which the slice's kernels ran."},
    {"carve_slice_slowdown_ratio", gauge, "ratio", metric_labels::part, agent_writes,
     "Time that the last minute's work took here, over the time that it takes alone on the device."},
    {"carve_slice_compute_busy_seconds_total", counter, "seconds", metric_labels::part, agent_writes,
     "Time charged to the slice: its work and the switches to it."},
    {"carve_slice_compute_waiting_seconds_total", counter, "seconds", metric_labels::part, agent_writes,
     "Time in which the slice had work and another slice held the device."},
    {"carve_slice_compute_throttled_seconds_total", counter, "seconds", metric_labels::part, agent_writes,
     "Time in which the slice had work and the device was free, but the slice's share was used up."},
    {"carve_slice_compute_burst_seconds_total", counter, "seconds", metric_labels::part, agent_writes,
     "Time charged beyond the slice's share."},
    {"carve_slice_compute_waits_total", counter, "", metric_labels::part, agent_writes,
     "Number of waits for the device."},
    {"carve_slice_compute_leases_total", counter, "", metric_labels::part, agent_writes,
     "Leases granted to the slice."},
    {"carve_slice_compute_overruns_total", counter, "", metric_labels::part, agent_writes,
     "Leases whose drain reached its time limit."},
    {"carve_slice_compute_wait_p50_seconds", gauge, "seconds", metric_labels::part, agent_writes,
     "Median of the slice's last thousand waits."},
    {"carve_slice_compute_wait_p99_seconds", gauge, "seconds", metric_labels::part, agent_writes,
     "99th percentile of the slice's last thousand waits."},
    {"carve_slice_copied_to_device_bytes_total", counter, "bytes", metric_labels::part, agent_writes,
     "Bytes that the slice's copies moved to devices, as its processes report them."},
    {"carve_slice_copied_to_host_bytes_total", counter, "bytes", metric_labels::part, agent_writes,
     "Bytes that the slice's copies moved to the host, as its processes report them."},
    {"carve_slice_copied_on_device_bytes_total", counter, "bytes", metric_labels::part, agent_writes,
     "Bytes that the slice's copies moved inside devices, as its processes report them."},

    // Devices by DCGM's names
    {"DCGM_FI_DEV_GPU_UTIL", gauge, "", metric_labels::dcgm, agent_writes, "GPU utilization (in %)."},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", gauge, "", metric_labels::dcgm, agent_writes, "Memory utilization (in %)."},
    {"DCGM_FI_DEV_FB_USED", gauge, "", metric_labels::dcgm, agent_writes,
     "Framebuffer memory used (in MiB)."},
    {"DCGM_FI_DEV_FB_FREE", gauge, "", metric_labels::dcgm, agent_writes,
     "Framebuffer memory free (in MiB)."},
    {"DCGM_FI_DEV_FB_RESERVED", gauge, "", metric_labels::dcgm, agent_writes,
     "Framebuffer memory reserved (in MiB)."},
    {"DCGM_FI_DEV_GPU_TEMP", gauge, "", metric_labels::dcgm, agent_writes, "GPU temperature (in C)."},
    {"DCGM_FI_DEV_POWER_USAGE", gauge, "", metric_labels::dcgm, agent_writes, "Power draw (in W)."},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", counter, "", metric_labels::dcgm, agent_writes,
     "Energy consumption since the driver was loaded (in mJ)."},
    {"DCGM_FI_DEV_SM_CLOCK", gauge, "", metric_labels::dcgm, agent_writes, "SM clock frequency (in MHz)."},
    {"DCGM_FI_DEV_MEM_CLOCK", gauge, "", metric_labels::dcgm, agent_writes,
     "Memory clock frequency (in MHz)."},
    {"DCGM_FI_DEV_XID_ERRORS", gauge, "", metric_labels::dcgm, agent_writes,
     "Number of the last Xid error since the agent started; 0 if there was none."},

    // The controller
    {"carve_service_requests_total", counter, "", metric_labels::service_code, controller_writes,
     "Requests, by the class of the response's status."},
    {"carve_service_request_seconds", MetricType::histogram, "seconds", metric_labels::service,
     controller_writes, "Times from a request to the header of a replica's response."},
    {"carve_service_sessions", gauge, "", metric_labels::service, controller_writes,
     "Requests, streams and tunnels in progress at the replicas."},
    {"carve_service_queued_requests", gauge, "", metric_labels::service, controller_writes,
     "Requests waiting for a replica."},
    {"carve_service_response_time_seconds", gauge, "seconds", metric_labels::service, controller_writes,
     "Mean time from a request to the header of its response, over the last 1,024 requests."},
    {"carve_service_replicas", gauge, "", metric_labels::service_state, controller_writes,
     "Replicas by state; Pending are those that have no slice."},
    {"carve_service_desired_replicas", gauge, "", metric_labels::service, controller_writes,
     "Replicas that the service should have."},
    {"carve_service_restarts_total", counter, "", metric_labels::service, controller_writes,
     "Restarts of the service's programs since the controller started."},
    {"carve_queue_jobs", gauge, "", metric_labels::queue_state, controller_writes,
     "Jobs of the queue: Waiting, Running."},
    {"carve_queue_wait_seconds", MetricType::histogram, "seconds", metric_labels::queue, controller_writes,
     "Times from the submission of a job, or its return to the queue, to its admission."},
    {"carve_queue_oldest_wait_seconds", gauge, "seconds", metric_labels::queue, controller_writes,
     "Time for which the oldest waiting job of the queue has waited; 0 if none waits."},
    {"carve_pool_drift", gauge, "", metric_labels::pool, controller_writes,
     "Nodes of the pool whose labels differ from the pool's."},
    {"carve_gpu_hours_total", counter, "hours", metric_labels::account, controller_writes,
     "GPU-hours of the invoice since the controller started. After 200 pairs of labels, further ones share "
     "the account (other)."},
    {"carve_budget_used_ratio", gauge, "ratio", metric_labels::budget, controller_writes,
     "Part of the budget that the account has used in this month."},
    {"carve_controller_info", gauge, "", metric_labels::version, controller_writes,
     "The version of the controller, always 1."},
    {"carve_queue_waiting_jobs", gauge, "", metric_labels::none, controller_writes,
     "Waiting jobs, over all queues."},
    {"carve_queue_decision_seconds", gauge, "seconds", metric_labels::none, controller_writes,
     "Duration of the last decision over all queues."},
    {"carve_controller_loop_longest_turn_seconds", gauge, "seconds", metric_labels::none, controller_writes,
     "Longest turn of the API's loop since the controller started. During a turn no caller gets a response."},

    // carve-kubelet and the coordinator
    {"carve_kubelet_info", gauge, "", metric_labels::version, kubelet_writes,
     "The version of carve-kubelet, always 1."},
    {"carve_agent_up", gauge, "", metric_labels::none, kubelet_writes,
     "1 if the node's agent responds, else 0."},
    {"carve_watch_lag_seconds", gauge, "seconds", metric_labels::resource,
     kubelet_writes | coordinator_writes, "Seconds since the last message from the API server."},
    {"carve_relists_total", counter, "", metric_labels::resource, kubelet_writes | coordinator_writes,
     "Number of lists of a resource after the first one."},
    {"carve_coordinator_info", gauge, "", metric_labels::version, coordinator_writes,
     "The version of the coordinator, always 1."},
    {"carve_coordinator_active", gauge, "", metric_labels::none, coordinator_writes,
     "1 if the scheduler of this replica holds the Lease, else 0."},
    {"carve_extender_seconds", MetricType::summary, "seconds", metric_labels::verb, coordinator_writes,
     "Responses to the scheduler and the time spent on them."},
    {"carve_binds_total", counter, "", metric_labels::result, coordinator_writes,
     "Bindings that the scheduler requested."},
    {"carve_binds_open", gauge, "", metric_labels::none, coordinator_writes,
     "Bindings whose response was lost and whose result is being checked."},
    {"carve_webhook_total", counter, "", metric_labels::review, coordinator_writes,
     "Reviews of pods, by dialect and result."},
    {"carve_cached_pods", gauge, "", metric_labels::none, coordinator_writes, "Pods in the cache."},
    {"carve_overcommitted_devices", gauge, "", metric_labels::none, coordinator_writes,
     "Devices on which pod annotations grant more than the device has."},
    {"carve_ledger_drift_devices", gauge, "", metric_labels::none, coordinator_writes,
     "Devices whose slices differ between the node's ledger and the cache."},
    {"carve_unreadable_objects", gauge, "", metric_labels::resource, coordinator_writes,
     "Objects whose annotations cannot be read."},
};

// Returns the row of a family. A name that is not in the table is a compile-time error.
consteval const MetricFamily& metric(std::string_view name) {
  for (const MetricFamily& family : metric_families)
    if (family.name == name) return family;
  throw std::invalid_argument("the family is not in metric_families");
}

}  // namespace carve::api
