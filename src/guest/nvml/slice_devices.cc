#include "guest/nvml/slice_devices.h"

#include <string.h>

namespace carve::guest {

unsigned granted_index(const Process& process, const char* text) {
  for (unsigned i = 0; i < process.device_count; ++i) {
    char granted[uuid_text_size];
    uuid_text(process.control->devices[i].uuid, granted);
    if (strcmp(granted, text) == 0) return i;
  }
  return not_granted;
}

unsigned granted_index(const Process& process, nvmlDevice_t device) {
  char text[96] = {};  // The longest text of NVML (NVML_DEVICE_UUID_V2_BUFFER_SIZE).
  if (driver<&nvmlDeviceGetUUID>(device, text, sizeof text) != NVML_SUCCESS) return not_granted;
  return granted_index(process, text);
}

namespace {

uint32_t read(const uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

}  // namespace

uint32_t own_pid(const Process& process, uint32_t drivers) {
  if (drivers == 0) return 0;
  const auto& slots = process.control->processes;
  for (const shm::ControlProcess& slot : slots)
    if (read(slot.pid) == drivers) return read(slot.inner_pid);
  for (const shm::ControlProcess& slot : slots)
    if (read(slot.pid) != 0 && read(slot.inner_pid) == drivers) return drivers;
  return 0;
}

uint32_t outer_pid(const Process& process, uint32_t own) {
  if (own == 0) return 0;
  for (const shm::ControlProcess& slot : process.control->processes)
    if (read(slot.pid) != 0 && read(slot.inner_pid) == own) return read(slot.pid);
  return 0;
}

}  // namespace carve::guest
