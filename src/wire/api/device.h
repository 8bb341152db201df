// Documents of the API, version 1: devices. Memory is in whole bytes, shares are basis points (1/100 of a
// percent), times are UTC nanoseconds since 1970; names end with the unit. Texts are only for display.
#pragma once

#include "core/commitment.h"
#include "core/device_readings.h"
#include "core/enforcement.h"
#include "core/xid.h"
#include "wire/api/json.h"
#include "wire/api/node.h"

namespace carve::api {

// The figures of a device's arbiter.
struct DeviceCompute {
  uint32_t idle_1s_bp = 0;  // Idle part of the last second (basis points).
  uint64_t switch_ns = 0;   // Cost of one switch between slices.
  uint64_t switches = 0;    // Switches since the agent started.
};

// GET /v1/devices -> DeviceList
struct Device {
  uint32_t index = 0;  // NVML's index.
  std::string uuid;    // "GPU-..."
  std::string name;    // "NVIDIA A10"
  std::string pci_id;  // "00000000:3B:00.0". Empty if not reported.
  bool simulated = false;
  bool migrates = false;                // Managed memory may exceed the device's memory.
  DeviceMode mode = DeviceMode::whole;  // Slices are offered on whole devices only.
  DeviceHealth health;
  uint64_t native_bytes = 0;  // As the driver reports it.
  uint64_t reserved_bytes = 0;
  uint64_t usable_bytes = 0;               // native - reserved; quotas and invoices count against it.
  uint64_t granted_bytes = 0;              // Granted to slices.
  uint64_t free_bytes = 0;                 // usable - granted.
  uint64_t used_bytes = 0;                 // In use by all processes, as the driver reports it.
  uint64_t used_in_slices_bytes = 0;       // In use by processes of the device's slices.
  uint64_t used_outside_slices_bytes = 0;  // In use by all other processes.
  uint64_t context_bytes = 0;              // Measured size of one context; 0 if not measured.
  uint32_t share_granted_bp = 0;
  uint32_t utilization_percent = 0;
  DeviceReadings readings;
  uint32_t slices = 0;
  uint32_t max_slices = 0;
  std::string exclusive_to;  // The slice that holds the whole device, or empty.
  PolicySetting policy;
  std::optional<Enforcement> compute;  // Enforcement of shares. Absent if no slice has an enforced share.
  Commitment commitment = Commitment::normal;
  std::vector<XidCount> xids;                // Errors that the driver has reported since the agent started.
  uint32_t last_xid = 0;                     // The last of these errors; 0 if there was none.
  std::optional<DeviceCompute> arbitration;  // Present if a share on the device is enforced.
  std::vector<std::string>
      unmanaged_processes;  // Processes on this shared device that are in no slice, each as a message.
};

struct DeviceList {
  std::vector<Device> devices;
  // Links between the devices, one line per device as `nvidia-smi topo -m` prints it. Empty if unknown.
  std::vector<std::string> links;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::DeviceList)
