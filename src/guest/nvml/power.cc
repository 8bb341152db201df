// Power, energy and the driver's samples cover all programs on a device. A slice of whole devices gets the
// driver's figures. A slice that has only a part of the device gets its part of the energy, which the agent
// measures by busy time. For power and samples it gets NVML_ERROR_NOT_SUPPORTED, because a program would
// mistake its neighbours' power for its own.
#include "guest/nvml/slice_devices.h"

using namespace carve::guest;

namespace {

bool is_shared(const Process& p, nvmlDevice_t device) {
  const unsigned granted = granted_index(p, device);
  return granted == not_granted || p.control->devices[granted].whole == 0;
}

// Returns the millijoules of the slice's part of a shared device.
unsigned long long energy_of_slice(const Process& p, unsigned granted) {
  return p.control->devices[granted].energy_microjoules.load(std::memory_order_relaxed) / 1000;
}

template <auto Entry, class... Arguments>
nvmlReturn_t of_whole_device(nvmlDevice_t device, Arguments... arguments) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  if (entered.process != nullptr && is_shared(*entered.process, device)) return NVML_ERROR_NOT_SUPPORTED;
  return driver<Entry>(device, arguments...);
}

bool is_of_the_device(unsigned field) {
  switch (field) {
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT:
    case NVML_FI_DEV_ENERGY: return true;
    default: return false;
  }
}

bool is_clock(nvmlSamplingType_t type) {
  return type == NVML_PROCESSOR_CLK_SAMPLES || type == NVML_MEMORY_CLK_SAMPLES;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* power) {
  return of_whole_device<&nvmlDeviceGetPowerUsage>(device, power);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* energy) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const nvmlReturn_t result = driver<&nvmlDeviceGetTotalEnergyConsumption>(device, energy);
  if (result != NVML_SUCCESS || entered.process == nullptr || !is_shared(*entered.process, device))
    return result;
  const unsigned granted = granted_index(*entered.process, device);
  *energy = 0;
  if (granted == not_granted) return NVML_ERROR_NOT_SUPPORTED;
  *energy = energy_of_slice(*entered.process, granted);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long since,
                                  nvmlValueType_t* value_type, unsigned int* count, nvmlSample_t* samples) {
  if (is_clock(type)) return driver<&nvmlDeviceGetSamples>(device, type, since, value_type, count, samples);
  return of_whole_device<&nvmlDeviceGetSamples>(device, type, since, value_type, count, samples);
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  const nvmlReturn_t result = driver<&nvmlDeviceGetFieldValues>(device, count, values);
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  if (result != NVML_SUCCESS || values == nullptr || entered.process == nullptr) return result;
  if (!is_shared(*entered.process, device)) return result;
  const unsigned granted = granted_index(*entered.process, device);
  for (int i = 0; i < count; ++i) {
    if (values[i].fieldId == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION && granted != not_granted) {
      if (values[i].nvmlReturn == NVML_SUCCESS)
        values[i].value.ullVal = energy_of_slice(*entered.process, granted);
      continue;
    }
    if (values[i].fieldId != NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION && !is_of_the_device(values[i].fieldId))
      continue;
    values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    values[i].value = {};
  }
  return result;
}
