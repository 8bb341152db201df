// The slice's devices: the granted ones, numbered from 0 in the agent's order.
#include "guest/nvml/slice_devices.h"

using namespace carve::guest;

namespace {

// `ask()` is the driver's call. Its count or handle is narrowed to the slice's devices.
template <class Ask>
nvmlReturn_t narrowed_count(unsigned int* count, Ask ask) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const nvmlReturn_t result = ask();
  if (result == NVML_SUCCESS && entered.process != nullptr && count != nullptr)
    *count = entered.process->device_count;
  return result;
}

template <class Ask>
nvmlReturn_t narrowed_index(unsigned int index, nvmlDevice_t* device, Ask ask) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  if (entered.process == nullptr) return ask();
  if (index >= entered.process->device_count) return NVML_ERROR_INVALID_ARGUMENT;
  char text[uuid_text_size];
  uuid_text(entered.process->control->devices[index].uuid, text);
  return driver<&nvmlDeviceGetHandleByUUID>(text, device);
}

template <class Ask>
nvmlReturn_t narrowed_handle(nvmlDevice_t* device, Ask ask) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  nvmlDevice_t found = nullptr;
  const nvmlReturn_t result = ask(device != nullptr ? &found : nullptr);
  if (result != NVML_SUCCESS || device == nullptr) return result;
  if (entered.process != nullptr && granted_index(*entered.process, found) == not_granted)
    return NVML_ERROR_NOT_FOUND;
  *device = found;
  return result;
}

// Topology queries that return sets of devices. `list(&count, devices)` is the driver's call, which returns
// only the count if `count` is 0. No machine has more devices than this limit.
constexpr unsigned max_listed_devices = 64;

template <class List>
nvmlReturn_t narrowed_set(unsigned int* count, nvmlDevice_t* devices, List list) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  if (entered.process == nullptr || count == nullptr) return list(count, devices);
  if (*count != 0 && devices == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlDevice_t all[max_listed_devices] = {};
  unsigned found = 0;
  nvmlReturn_t result = list(&found, nullptr);
  found = std::min(found, max_listed_devices);
  if (result == NVML_SUCCESS && found != 0) result = list(&found, all);
  if (result != NVML_SUCCESS) return result;
  unsigned granted = 0;
  for (unsigned i = 0; i < std::min(found, max_listed_devices); ++i) {
    if (granted_index(*entered.process, all[i]) == not_granted) continue;
    if (granted < *count) devices[granted] = all[i];
    ++granted;
  }
  *count = *count == 0 ? granted : std::min(granted, *count);
  return result;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetCount(unsigned int* count) {
  return narrowed_count(count, [=] { return driver<&nvmlDeviceGetCount>(count); });
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  return narrowed_count(count, [=] { return driver<&nvmlDeviceGetCount_v2>(count); });
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return narrowed_index(index, device, [=] { return driver<&nvmlDeviceGetHandleByIndex>(index, device); });
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  return narrowed_index(index, device, [=] { return driver<&nvmlDeviceGetHandleByIndex_v2>(index, device); });
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  return narrowed_handle(device,
                         [=](nvmlDevice_t* d) { return driver<&nvmlDeviceGetHandleByUUID>(uuid, d); });
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* device) {
  return narrowed_handle(device,
                         [=](nvmlDevice_t* d) { return driver<&nvmlDeviceGetHandleByUUIDV>(uuid, d); });
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  return narrowed_handle(device,
                         [=](nvmlDevice_t* d) { return driver<&nvmlDeviceGetHandleBySerial>(serial, d); });
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device) {
  return narrowed_handle(device,
                         [=](nvmlDevice_t* d) { return driver<&nvmlDeviceGetHandleByPciBusId>(id, d); });
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  return narrowed_handle(device,
                         [=](nvmlDevice_t* d) { return driver<&nvmlDeviceGetHandleByPciBusId_v2>(id, d); });
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const nvmlReturn_t result = driver<&nvmlDeviceGetIndex>(device, index);
  const Process* p = entered.process;
  if (result != NVML_SUCCESS || p == nullptr || index == nullptr) return result;
  const unsigned granted = granted_index(*p, device);
  if (granted == not_granted) return NVML_ERROR_INVALID_ARGUMENT;
  *index = granted;
  return result;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int* count, nvmlDevice_t* devices) {
  return narrowed_set(count, devices, [=](unsigned* n, nvmlDevice_t* all) {
    return driver<&nvmlDeviceGetTopologyNearestGpus>(device, level, n, all);
  });
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int* count, nvmlDevice_t* devices) {
  return narrowed_set(count, devices, [=](unsigned* n, nvmlDevice_t* all) {
    return driver<&nvmlSystemGetTopologyGpuSet>(cpu, n, all);
  });
}
