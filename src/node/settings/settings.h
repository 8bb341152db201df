// The agent's options and the devices that it found.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/slice.h"
#include "core/violation.h"
#include "core/xid.h"
#include "node/cdi/cdi.h"
#include "node/devices/nvml_library.h"
#include "place/topology.h"

namespace carve::node {

struct Settings {
  std::string socket, state, cdi_dir;
  Strategy strategy = Strategy::binpack;
  Bookkeeper bookkeeper = Bookkeeper::agent;
  bool contexts_in_slice = true;  // Charge contexts to slices; otherwise to the device's reserved bytes.
  std::optional<Bytes> spill_limit = {};  // For all slices together; half of the host's memory if absent.
  AuditAction audit = AuditAction::report;
  OverQuotaAction over_quota = OverQuotaAction::refuse;
  Paths paths;                      // Paths of Carve's and the driver's libraries.
  std::optional<Policy> policy;     // From the command line, or from a label.
  bool policy_per_slice = false;    // Allow slices of one device to follow different policies.
  bool admit_best_effort = true;    // Admit slices without a share next to enforced ones.
  bool dcgm_names = true;           // Metrics include DCGM's series of the devices.
  bool overcommit_compute = false;  // Allow granting more than 100 % of a device's compute.
  int64_t ready_at_ns = 0;          // CLOCK_MONOTONIC time before which no slice is granted (--start-delay).
  std::string host_name;            // The node's name in a cluster, or the machine's.
  std::string kernel_log;           // The file that names the process of an Xid.
  std::optional<place::Topology> topology;  // Links between the devices, in the devices' order.
};

// A device as found at the start, and its changing state.
struct NodeDevice {
  Device device;
  Bytes context;  // Size of one context; 0 if not measured.
  std::string context_trouble;
  DeviceSample sample;
  unsigned minor = 0;  // N of /dev/nvidiaN.
  std::string pci_id;
  std::string xid;        // The last error of the device itself (Xid), as a message.
  XidCounts xids;         // Number of reports of each Xid since the agent started.
  uint32_t last_xid = 0;  // The last of them; 0 if there was none.
  std::vector<std::string> unmanaged_processes;
  Bytes used_in_slices, used_outside_slices;  // Used by processes, as of the last sample.

  DeviceHealth health() const {
    if (sample.health.state != HealthState::ok || xid.empty()) return sample.health;
    return {HealthState::xid, xid};
  }
};

}  // namespace carve::node
