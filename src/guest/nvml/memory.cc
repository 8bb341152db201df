// Memory of a device, narrowed to the slice: `total` is the quota, `used` is what the slice holds, and `free`
// is the smaller of what is left of the quota and of the device. Without a limit the driver's figures are
// unchanged. The driver checks the version field of the newer structure before the hook changes it.
#include "guest/nvml/slice_devices.h"

using namespace carve;
using namespace carve::guest;

namespace {

template <class Memory>
nvmlReturn_t narrowed_memory(nvmlDevice_t device, Memory* memory, nvmlReturn_t result) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const Process* p = entered.process;
  if (result != NVML_SUCCESS || p == nullptr || memory == nullptr) return result;
  const unsigned granted = granted_index(*p, device);
  if (granted == not_granted) return NVML_ERROR_INVALID_ARGUMENT;
  const uint64_t limit = quota(*p, granted);
  if (limit == UINT64_MAX) return result;
  memory->total = std::min<uint64_t>(memory->total, limit);
  memory->used = std::min<uint64_t>(memory->total, used(*p, granted));
  memory->free = std::min<uint64_t>(memory->free, memory->total - memory->used);
  if constexpr (requires { memory->reserved; })
    memory->reserved = 0;  // It belongs to the device, not to a slice.
  return result;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  return narrowed_memory(device, memory, driver<&nvmlDeviceGetMemoryInfo>(device, memory));
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  return narrowed_memory(device, memory, driver<&nvmlDeviceGetMemoryInfo_v2>(device, memory));
}
