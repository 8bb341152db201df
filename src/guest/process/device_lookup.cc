#include "guest/process/device_lookup.h"

#include <string.h>

namespace carve::guest {

DeviceLookup find_device(Process& process, CUdevice device) {
  const bool cached = device >= 0 && static_cast<unsigned>(device) < cached_ordinals;
  if (cached) {
    const uint8_t known = process.device_of_ordinal[device].load(std::memory_order_relaxed);
    if (known != 0) return {CUDA_SUCCESS, known - 1u};
  }
  CUuuid uuid = {};
  const CUresult result = driver<&cuDeviceGetUuid>(&uuid, device);
  if (result != CUDA_SUCCESS) return {result, not_granted};
  unsigned index = not_granted;
  for (unsigned i = 0; i < process.device_count && index == not_granted; ++i)
    if (memcmp(process.control->devices[i].uuid, uuid.bytes, sizeof uuid.bytes) == 0) index = i;
  if (cached)
    process.device_of_ordinal[device].store(static_cast<uint8_t>(index + 1), std::memory_order_relaxed);
  return {CUDA_SUCCESS, index};
}

Current current(Process& process) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUresult result = driver<&cuCtxGetDevice>(&device);
  if (result == CUDA_SUCCESS) result = driver<&cuCtxGetCurrent>(&context);
  if (result != CUDA_SUCCESS) return {result, not_granted, nullptr};
  const DeviceLookup found = find_device(process, device);
  return {found.result, found.device, context};
}

}  // namespace carve::guest
