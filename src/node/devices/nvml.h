// What NVML says about this machine's devices. The library is opened at run time (libnvidia-ml.so.1, real or
// simulated), so that the agent starts on a machine without a driver and can say so.
//
// Calls may take seconds on a sick device; after start only the sampler's thread makes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "abi/nvml.h"
#include "core/device.h"
#include "core/failure.h"
#include "place/topology.h"

namespace carve::node {

// The entry points we use, typed by their declarations. One that an older driver lacks is null.
struct NvmlTable {
  decltype(&nvmlInit_v2) init;
  decltype(&nvmlShutdown) shutdown;
  decltype(&nvmlErrorString) error_string;
  decltype(&nvmlSystemGetDriverVersion) driver_version;
  decltype(&nvmlDeviceGetCount_v2) count;
  decltype(&nvmlDeviceGetHandleByIndex_v2) handle;
  decltype(&nvmlDeviceGetUUID) uuid;
  decltype(&nvmlDeviceGetName) name;
  decltype(&nvmlDeviceGetMinorNumber) minor;
  decltype(&nvmlDeviceGetMemoryInfo) memory;
  decltype(&nvmlDeviceGetMemoryInfo_v2) memory_v2;                       // Since driver 510.
  decltype(&nvmlDeviceGetComputeRunningProcesses_v3) compute_processes;  // Since driver 510.
  decltype(&nvmlDeviceGetGraphicsRunningProcesses_v3) graphics_processes;
  decltype(&nvmlDeviceGetUtilizationRates) utilization;
  decltype(&nvmlDeviceGetProcessUtilization) process_utilization;
  decltype(&nvmlDeviceGetTopologyCommonAncestor) common_ancestor;
  decltype(&nvmlDeviceGetP2PStatus) peer_status;
  decltype(&nvmlEventSetCreate) event_set;
  decltype(&nvmlDeviceRegisterEvents) register_events;
  decltype(&nvmlEventSetWait_v2) wait_for_event;
};

struct ProcessUse {
  unsigned pid;
  Bytes used;
  bool graphics_only = false;  // Among graphics clients, not among those that compute.
  unsigned sm_percent = 0;  // Of the driver's last sampling period (1/6 s to 1 s), in which its kernels ran.
};

struct DeviceSample {
  Bytes used;  // By whomever, without the reserved part.
  unsigned utilization_percent = 0;
  std::vector<ProcessUse> processes;
  bool processes_hidden = false;  // NVML does not say who uses how much (another pid namespace, WSL, MIG).
  std::string trouble;            // Empty: healthy.
};

class Nvml {
 public:
  // Opens `library` and NVML in it.
  static Outcome<std::unique_ptr<Nvml>> open(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // In NVML's order, without those that are lost (`said` hears of them). `reserve`: what is kept back of
  // each, instead of what the driver calls reserved.
  Outcome<std::vector<Device>> find_devices(const Bytes* reserve, std::vector<std::string>& said);
  unsigned minor_of(unsigned index) const;  // N of /dev/nvidiaN.
  // How the devices with these indices are connected, numbered by their position here. What the driver does
  // not say of a pair is left out.
  std::vector<place::Wire> wires(const std::vector<unsigned>& indexes) const;
  const std::string& driver_version() const { return driver_version_; }

  DeviceSample sample(unsigned index);  // NVML's index.
  // Xid errors since the last call: device index and number. Never waits.
  std::vector<std::pair<unsigned, unsigned>> xids();

  std::vector<ProcessUse> processes(unsigned index, bool& hidden, nvmlReturn_t& result);
  void look_at_work(unsigned index, std::vector<ProcessUse>&);

 private:
  Nvml() = default;
  std::string text_of(nvmlReturn_t) const;

  void* library_ = nullptr;
  bool initialised_ = false;
  NvmlTable call_{};
  std::string driver_version_;
  std::vector<nvmlDevice_t> handles_;  // By NVML's index; null: lost.
  nvmlEventSet_t events_ = nullptr;
};

}  // namespace carve::node
