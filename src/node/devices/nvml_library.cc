#include "node/devices/nvml_library.h"

#include <dlfcn.h>

#include <algorithm>

#include "abi/nvml_tables.h"
#include "os/clock.h"

namespace carve::node {
namespace {

// Returns a structure's version as defined in nvml.h: its size and, in the top byte, its number.
template <class T>
constexpr unsigned versioned(unsigned number) {
  return static_cast<unsigned>(sizeof(T)) | number << 24;
}

template <class F>
void bind(void* library, const char* name, F& slot) {
  slot = reinterpret_cast<F>(dlsym(library, name));
}

}  // namespace

std::string Nvml::text_of(nvmlReturn_t result) const {
  const char* text = call_.error_string != nullptr ? call_.error_string(result) : nullptr;
  return text != nullptr ? text : fmt::format("NVML error {}", static_cast<int>(result));
}

std::string unknown_process_table(uint64_t table_bytes, const std::string& driver_version) {
  if (find_process_table(table_bytes) != nullptr) return "";
  return fmt::format(
      "nvidia-smi in a slice shows all processes of its devices, because driver {} has an unknown private "
      "table of {} bytes",
      driver_version, table_bytes);
}

std::string Nvml::process_lists_trouble() const {
  const void* table = nullptr;
  if (call_.export_table == nullptr || call_.export_table(&table, nvml_process_table_id) != NVML_SUCCESS ||
      table == nullptr)
    return "";
  return unknown_process_table(*static_cast<const uint64_t*>(table), driver_version_);
}

Outcome<std::unique_ptr<Nvml>> Nvml::open(const std::string& library) {
  std::unique_ptr<Nvml> nvml(new Nvml);
  nvml->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml->library_ == nullptr)
    return failure(FailureKind::unavailable,
                   "cannot load NVML: {}; install NVIDIA's driver, or simulate devices with --sim a10x2",
                   dlerror());
  NvmlTable& call = nvml->call_;
  void* from = nvml->library_;
  bind(from, "nvmlInit_v2", call.init);
  bind(from, "nvmlShutdown", call.shutdown);
  bind(from, "nvmlErrorString", call.error_string);
  bind(from, "nvmlSystemGetDriverVersion", call.driver_version);
  bind(from, "nvmlDeviceGetCount_v2", call.count);
  bind(from, "nvmlDeviceGetHandleByIndex_v2", call.handle);
  bind(from, "nvmlDeviceGetUUID", call.uuid);
  bind(from, "nvmlDeviceGetName", call.name);
  bind(from, "nvmlDeviceGetMinorNumber", call.minor);
  bind(from, "nvmlDeviceGetMemoryInfo", call.memory);
  bind(from, "nvmlDeviceGetMemoryInfo_v2", call.memory_v2);
  bind(from, "nvmlDeviceGetComputeRunningProcesses_v3", call.compute_processes);
  bind(from, "nvmlDeviceGetGraphicsRunningProcesses_v3", call.graphics_processes);
  bind(from, "nvmlDeviceGetProcessUtilization", call.process_utilization);
  bind(from, "nvmlDeviceGetUtilizationRates", call.utilization);
  bind(from, "nvmlDeviceGetTopologyCommonAncestor", call.common_ancestor);
  bind(from, "nvmlDeviceGetP2PStatus", call.peer_status);
  bind(from, "nvmlDeviceGetPciInfo_v3", call.pci_info);
  bind(from, "nvmlDeviceGetTemperature", call.temperature);
  bind(from, "nvmlDeviceGetPowerUsage", call.power);
  bind(from, "nvmlDeviceGetEnforcedPowerLimit", call.power_limit);
  bind(from, "nvmlDeviceGetTotalEnergyConsumption", call.energy);
  bind(from, "nvmlDeviceGetClockInfo", call.clock);
  bind(from, "nvmlDeviceGetMigMode", call.mig_mode);
  bind(from, "nvmlDeviceGetMPSComputeRunningProcesses_v3", call.mps_processes);
  bind(from, "nvmlDeviceGetAccountingMode", call.accounting.mode);
  bind(from, "nvmlDeviceSetAccountingMode", call.accounting.set_mode);
  bind(from, "nvmlDeviceGetAccountingPids", call.accounting.pids);
  bind(from, "nvmlDeviceGetAccountingStats", call.accounting.stats);
  bind(from, "nvmlEventSetCreate", call.event_set);
  bind(from, "nvmlEventSetFree", call.free_event_set);
  bind(from, "nvmlDeviceRegisterEvents", call.register_events);
  bind(from, "nvmlEventSetWait_v2", call.wait_for_event);
  bind(from, "nvmlInternalGetExportTable", call.export_table);
  if (call.init == nullptr || call.count == nullptr || call.handle == nullptr || call.uuid == nullptr ||
      call.memory == nullptr || call.compute_processes == nullptr)
    return failure(FailureKind::unavailable, "{} is older than driver 510; install a newer driver", library);
  if (const nvmlReturn_t result = call.init(); result != NVML_SUCCESS)
    return failure(FailureKind::unavailable,
                   "cannot initialize NVML: {}; check with nvidia-smi that the driver is loaded",
                   nvml->text_of(result));
  nvml->initialised_ = true;
  char version[96] = "unknown";
  if (call.driver_version != nullptr) call.driver_version(version, sizeof version);
  nvml->driver_version_ = version;
  return nvml;
}

Nvml::~Nvml() {
  stop_xids();
  if (initialised_ && call_.shutdown != nullptr) call_.shutdown();
  // The library stays loaded, because drivers have threads that outlive a dlclose.
}

Outcome<std::vector<Device>> Nvml::find_devices(const Bytes* reserve, std::vector<std::string>& said) {
  unsigned count = 0;
  if (const nvmlReturn_t result = call_.count(&count); result != NVML_SUCCESS)
    return failure(FailureKind::unavailable, "NVML does not report the number of devices: {}",
                   text_of(result));
  std::vector<Device> devices;
  handles_.assign(count, nullptr);
  lost_indexes_.clear();
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t handle = nullptr;
    nvmlReturn_t result = call_.handle(i, &handle);
    if (result == NVML_ERROR_GPU_IS_LOST) {
      said.push_back(fmt::format("device {} is lost (it is no longer on the bus) and is ignored", i));
      lost_indexes_.push_back(i);
      continue;
    }
    if (result != NVML_SUCCESS) return failure(FailureKind::unavailable, "device {}: {}", i, text_of(result));
    char text[96] = "";
    Device device;
    device.index = i;
    result = call_.uuid(handle, text, sizeof text);
    if (result != NVML_SUCCESS)
      return failure(FailureKind::unavailable, "device {} has no UUID: {}", i, text_of(result));
    const auto uuid = parse_uuid(text);
    if (!uuid)
      return failure(FailureKind::unavailable, "device {} reports '{}', which is not a UUID", i, text);
    device.uuid = *uuid;
    if (call_.name != nullptr && call_.name(handle, text, sizeof text) == NVML_SUCCESS) device.name = text;
    nvmlMemory_v2_t memory{};
    memory.version = versioned<nvmlMemory_v2_t>(2);
    if (call_.memory_v2 != nullptr && call_.memory_v2(handle, &memory) == NVML_SUCCESS) {
      device.native = {memory.total};
      device.reserved = {memory.reserved};
    } else {
      nvmlMemory_t old{};
      result = call_.memory(handle, &old);
      if (result == NVML_ERROR_GPU_IS_LOST) {
        said.push_back(fmt::format("device {} is lost (it is no longer on the bus) and is ignored", i));
        lost_indexes_.push_back(i);
        continue;
      }
      if (result != NVML_SUCCESS)
        return failure(FailureKind::unavailable, "device {} does not report its memory: {}", i,
                       text_of(result));
      device.native = {old.total};
    }
    if (reserve != nullptr) device.reserved = *reserve;
    if (device.reserved >= device.native)
      return failure(FailureKind::invalid_argument, "--reserve {}: device {} has only {}; reserve less",
                     carve::text(device.reserved).c_str(), i, carve::text(device.native).c_str());
    devices.push_back(device);
    handles_[i] = handle;
  }
  start_xids();
  return devices;
}

void Nvml::start_xids() {
  stop_xids();
  if (call_.event_set == nullptr || call_.register_events == nullptr || call_.wait_for_event == nullptr ||
      call_.event_set(&events_) != NVML_SUCCESS)
    return;
  for (const nvmlDevice_t handle : handles_)
    if (handle != nullptr) call_.register_events(handle, nvmlEventTypeXidCriticalError, events_);
}

void Nvml::stop_xids() {
  if (events_ != nullptr && call_.free_event_set != nullptr) call_.free_event_set(events_);
  events_ = nullptr;
}

unsigned Nvml::minor_of(unsigned index) const {
  unsigned minor = index;
  if (call_.minor != nullptr && call_.minor(handles_[index], &minor) != NVML_SUCCESS) minor = index;
  return minor;
}

std::string Nvml::pci_id_of(unsigned index) const {
  nvmlPciInfo_t pci{};
  if (call_.pci_info == nullptr || call_.pci_info(handles_[index], &pci) != NVML_SUCCESS) return "";
  return pci.busId;
}

DeviceReadings Nvml::readings(unsigned index) const {
  const auto reading = [](auto call, auto... arguments) -> std::optional<uint32_t> {
    unsigned value = 0;
    if (call == nullptr || call(arguments..., &value) != NVML_SUCCESS) return std::nullopt;
    return value;
  };
  const nvmlDevice_t handle = handles_[index];
  DeviceReadings out{.temperature_celsius = reading(call_.temperature, handle, NVML_TEMPERATURE_GPU),
                     .power_milliwatts = reading(call_.power, handle),
                     .power_limit_milliwatts = reading(call_.power_limit, handle),
                     .sm_clock_mhz = reading(call_.clock, handle, NVML_CLOCK_SM),
                     .memory_clock_mhz = reading(call_.clock, handle, NVML_CLOCK_MEM)};
  unsigned long long millijoules = 0;
  if (call_.energy != nullptr && call_.energy(handle, &millijoules) == NVML_SUCCESS)
    out.energy_millijoules = millijoules;
  nvmlMemory_v2_t memory{};
  memory.version = versioned<nvmlMemory_v2_t>(2);
  if (call_.memory_v2 != nullptr && call_.memory_v2(handle, &memory) == NVML_SUCCESS)
    out.memory_reserved_bytes = memory.reserved;
  return out;
}

DeviceMode Nvml::mode(unsigned index) const {
  unsigned now = 0, pending = 0, clients = 0;
  if (call_.mig_mode != nullptr && call_.mig_mode(handles_[index], &now, &pending) == NVML_SUCCESS &&
      now == NVML_DEVICE_MIG_ENABLE)
    return DeviceMode::mig;
  // Without room for a row, INSUFFICIENT_SIZE means that there is at least one row.
  if (call_.mps_processes != nullptr &&
      call_.mps_processes(handles_[index], &clients, nullptr) == NVML_ERROR_INSUFFICIENT_SIZE)
    return DeviceMode::mps;
  return DeviceMode::whole;
}

std::vector<place::Wire> Nvml::wires(const std::vector<unsigned>& indexes) const {
  std::vector<place::Wire> out;
  const auto link_of = [&](nvmlDevice_t a, nvmlDevice_t b) -> std::optional<place::Link> {
    nvmlGpuP2PStatus_t status{};
    if (call_.peer_status != nullptr &&
        call_.peer_status(a, b, NVML_P2P_CAPS_INDEX_NVLINK, &status) == NVML_SUCCESS &&
        status == NVML_P2P_STATUS_OK)
      return place::Link::nvlink;
    nvmlGpuTopologyLevel_t level{};
    if (call_.common_ancestor == nullptr || call_.common_ancestor(a, b, &level) != NVML_SUCCESS)
      return std::nullopt;
    if (level <= NVML_TOPOLOGY_MULTIPLE) return place::Link::bridge;
    return level <= NVML_TOPOLOGY_NODE ? place::Link::numa : place::Link::socket;
  };
  for (unsigned a = 0; a < indexes.size(); ++a)
    for (unsigned b = a + 1; b < indexes.size(); ++b)
      if (const auto link = link_of(handles_[indexes[a]], handles_[indexes[b]])) out.push_back({a, b, *link});
  return out;
}

std::vector<ProcessUse> Nvml::processes(unsigned index, bool& hidden, nvmlReturn_t& result) {
  std::vector<ProcessUse> out;
  for (const auto list : {call_.compute_processes, call_.graphics_processes}) {
    if (list == nullptr) continue;
    std::vector<nvmlProcessInfo_t> found(64);
    unsigned count = 64;
    result = list(handles_[index], &count, found.data());
    for (int attempt = 0; result == NVML_ERROR_INSUFFICIENT_SIZE && attempt < 4; ++attempt) {
      found.resize(count + 64);
      count = static_cast<unsigned>(found.size());
      result = list(handles_[index], &count, found.data());
    }
    if (result == NVML_ERROR_NOT_SUPPORTED) {
      result = NVML_SUCCESS;
      continue;
    }
    if (result != NVML_SUCCESS) return out;
    for (unsigned i = 0; i < std::min<size_t>(count, found.size()); ++i) {
      if (found[i].usedGpuMemory == NVML_VALUE_NOT_AVAILABLE) {
        hidden = true;
        continue;
      }
      const auto same = std::ranges::find(out, found[i].pid, &ProcessUse::pid);
      if (same == out.end())
        out.push_back({found[i].pid, {found[i].usedGpuMemory}, list == call_.graphics_processes});
    }
  }
  return out;
}

// Adds the newest utilization sample of each process. Real drivers keep samples for a few seconds.
void Nvml::look_at_work(unsigned index, std::vector<ProcessUse>& processes) {
  if (call_.process_utilization == nullptr) return;
  WorkSamples& work = work_[index];
  const uint64_t now_us = static_cast<uint64_t>(os::utc_ns()) / 1000;
  std::vector<nvmlProcessUtilizationSample_t> samples(256);
  const auto read = [&](unsigned& count) {
    return call_.process_utilization(handles_[index], samples.data(), &count, work.since_us());
  };
  unsigned count = 256;
  nvmlReturn_t result = read(count);
  if (result == NVML_ERROR_INSUFFICIENT_SIZE && count < 65536) {
    samples.resize(count);
    result = read(count);
  }
  samples.resize(result == NVML_SUCCESS ? std::min<size_t>(count, samples.size())
                                        : 0);  // NOT_FOUND means no new sample.
  std::vector<unsigned> pids;
  for (const ProcessUse& process : processes) pids.push_back(process.pid);
  work.add(samples, pids, now_us);
  for (ProcessUse& process : processes) process.work = work.shown(process.pid);
}

nvmlReturn_t Nvml::read_used(unsigned index, Bytes& out) const {
  nvmlMemory_v2_t memory{};
  memory.version = versioned<nvmlMemory_v2_t>(2);
  nvmlReturn_t result =
      call_.memory_v2 != nullptr ? call_.memory_v2(handles_[index], &memory) : NVML_ERROR_FUNCTION_NOT_FOUND;
  if (result == NVML_ERROR_FUNCTION_NOT_FOUND) {
    nvmlMemory_t old{};
    result = call_.memory(handles_[index], &old);
    memory.used = old.used;
  }
  out = {memory.used};
  return result;
}

DeviceSample Nvml::sample(unsigned index) {
  DeviceSample out;
  nvmlReturn_t result = read_used(index, out.used);
  if (result == NVML_SUCCESS) out.processes = processes(index, out.processes_hidden, result);
  if (result == NVML_SUCCESS) look_at_work(index, out.processes);
  if (result == NVML_SUCCESS) out.readings = readings(index);
  nvmlUtilization_t utilization{};
  if (call_.utilization != nullptr && call_.utilization(handles_[index], &utilization) == NVML_SUCCESS) {
    out.utilization_percent = utilization.gpu;
    out.readings.memory_busy_percent = utilization.memory;
  }
  if (result == NVML_SUCCESS) out.mode = mode(index);
  if (result == NVML_SUCCESS) out.accounting = accounting_[index].read(call_.accounting, handles_[index]);
  if (result == NVML_ERROR_GPU_IS_LOST)
    out.health = {HealthState::lost,
                  "the device is lost (it is no longer on the bus); reset it or restart the node"};
  else if (result != NVML_SUCCESS)
    out.health = {HealthState::lost, "NVML cannot read the device: " + text_of(result)};
  return out;
}

std::vector<std::pair<unsigned, unsigned>> Nvml::xids() {
  std::vector<std::pair<unsigned, unsigned>> out;
  nvmlEventData_t data{};
  while (events_ != nullptr && out.size() < 64 && call_.wait_for_event(events_, &data, 0) == NVML_SUCCESS) {
    const auto device = std::ranges::find(handles_, data.device);
    if (device != handles_.end() && data.eventType == nvmlEventTypeXidCriticalError)
      out.emplace_back(static_cast<unsigned>(device - handles_.begin()),
                       static_cast<unsigned>(data.eventData));
  }
  return out;
}

}  // namespace carve::node
