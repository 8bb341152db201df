// Reads the state of this node's devices from NVML. The library (libnvidia-ml.so.1, real or simulated) is
// opened at run time, so that the agent can start on a machine without a driver and report that.
//
// Calls may take seconds on a faulty device; after the start only the sampler's thread makes them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "abi/nvml.h"
#include "core/device.h"
#include "core/device_readings.h"
#include "core/enforcement.h"
#include "core/failure.h"
#include "node/devices/nvml_accounting.h"
#include "node/devices/work_samples.h"
#include "place/topology.h"

namespace carve::node {

// The entry points that Carve uses, with the types of their declarations. An entry is null if an older driver
// lacks it.
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
  decltype(&nvmlDeviceGetPciInfo_v3) pci_info;
  decltype(&nvmlDeviceGetTemperature) temperature;
  decltype(&nvmlDeviceGetPowerUsage) power;
  decltype(&nvmlDeviceGetEnforcedPowerLimit) power_limit;
  decltype(&nvmlDeviceGetTotalEnergyConsumption) energy;  // Since Volta.
  decltype(&nvmlDeviceGetClockInfo) clock;
  decltype(&nvmlDeviceGetMigMode) mig_mode;
  decltype(&nvmlDeviceGetMPSComputeRunningProcesses_v3) mps_processes;  // Since driver 510.
  AccountingCalls accounting;
  decltype(&nvmlEventSetCreate) event_set;
  decltype(&nvmlEventSetFree) free_event_set;
  decltype(&nvmlDeviceRegisterEvents) register_events;
  decltype(&nvmlEventSetWait_v2) wait_for_event;
  decltype(&nvmlInternalGetExportTable) export_table;
};

// Returns why the guest library does not change a private table of this size (abi/nvml_tables.h); empty if
// the size is known.
std::string unknown_process_table(uint64_t table_bytes, const std::string& driver_version);

struct ProcessUse {
  unsigned pid;
  Bytes used;
  bool graphics_only = false;  // The driver lists it only among graphics clients.
  WorkShown work;              // The work of its kernels.
};

struct DeviceSample {
  Bytes used;  // Bytes in use by all processes, without the reserved part.
  unsigned utilization_percent = 0;
  std::vector<ProcessUse> processes;
  bool processes_hidden = false;  // NVML does not report the memory of each process (another pid namespace,
                                  // WSL, MIG).
  DeviceHealth health;            // Without the errors that events report (Xid).
  DeviceReadings readings;
  DeviceMode mode = DeviceMode::whole;
  AccountingSample accounting;
};

class Nvml {
 public:
  // Opens `library` and initialises NVML in it.
  static Outcome<std::unique_ptr<Nvml>> open(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Returns the indexes of the lost devices that the last find_devices() left out.
  const std::vector<unsigned>& lost_indexes() const { return lost_indexes_; }
  // Returns the devices in NVML's order, without lost ones; a message about each lost device is added to
  // `said`. If given, `reserve` replaces the reserved bytes that the driver reports.
  Outcome<std::vector<Device>> find_devices(const Bytes* reserve, std::vector<std::string>& said);
  unsigned minor_of(unsigned index) const;      // N of /dev/nvidiaN.
  std::string pci_id_of(unsigned index) const;  // "00000000:3B:00.0". Empty if not reported.
  // Returns the links between the devices with these indexes, which are numbered by their position in
  // `indexes`. Pairs that the driver does not report are left out.
  std::vector<place::Wire> wires(const std::vector<unsigned>& indexes) const;
  const std::string& driver_version() const { return driver_version_; }
  // Returns why nvidia-smi in a slice also shows other processes; empty if it does not.
  std::string process_lists_trouble() const;

  // Reads the bytes in use by all processes, without the reserved part. `index` is NVML's index.
  nvmlReturn_t read_used(unsigned index, Bytes&) const;
  DeviceSample sample(unsigned index);
  // Returns the device index and the number of each Xid error since the last call. Never blocks.
  std::vector<std::pair<unsigned, unsigned>> xids();

  std::vector<ProcessUse> processes(unsigned index, bool& hidden, nvmlReturn_t& result);
  DeviceReadings readings(unsigned index) const;
  DeviceMode mode(unsigned index) const;
  void look_at_work(unsigned index, std::vector<ProcessUse>&);

 private:
  Nvml() = default;
  void start_xids();  // Registers the devices that are not lost for Xid errors.
  void stop_xids();
  std::string text_of(nvmlReturn_t) const;

  void* library_ = nullptr;
  bool initialised_ = false;
  NvmlTable call_{};
  std::string driver_version_;
  std::vector<unsigned> lost_indexes_;
  std::vector<nvmlDevice_t> handles_;          // By NVML's index; null if the device is lost.
  std::map<unsigned, Accounting> accounting_;  // By NVML's index.
  std::map<unsigned, WorkSamples> work_;       // By NVML's index.
  nvmlEventSet_t events_ = nullptr;
};

}  // namespace carve::node
