// The hooks that show a program the devices of its slice, each with the size of its quota.
#include "guest/process/device_lookup.h"
#include "guest/quota/charge.h"

using namespace carve::guest;

namespace {

// Calls `see(device)` for each of the driver's devices that the slice was granted, in the driver's order,
// until `see` returns false. These are the devices that CUDA_VISIBLE_DEVICES allows, without those that only
// other slices were granted.
template <class See>
CUresult each_granted(Process& p, See see) {
  int count = 0;
  CUresult result = driver<&cuDeviceGetCount>(&count);
  for (int i = 0; result == CUDA_SUCCESS && i < count; ++i) {
    CUdevice device = 0;
    result = driver<&cuDeviceGet>(&device, i);
    if (result == CUDA_SUCCESS && find_device(p, device).device != not_granted && !see(device)) break;
  }
  return result;
}

}  // namespace

CUresult cuDeviceGetCount(int* count) {
  Process* p = attached();
  if (p == nullptr || count == nullptr) return driver<&cuDeviceGetCount>(count);
  int granted = 0;
  const CUresult result = each_granted(*p, [&](CUdevice) { return ++granted, true; });
  if (result == CUDA_SUCCESS) *count = granted;
  return result;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  Process* p = attached();
  if (p == nullptr || device == nullptr || ordinal < 0) return driver<&cuDeviceGet>(device, ordinal);
  bool found = false;
  const CUresult result = each_granted(*p, [&](CUdevice d) {
    found = ordinal-- == 0;
    if (found) *device = d;
    return !found;
  });
  return result == CUDA_SUCCESS && !found ? CUDA_ERROR_INVALID_DEVICE : result;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const CUresult result = driver<&cuDeviceTotalMem_v2>(bytes, device);
  Process* p = enter().process;
  if (result != CUDA_SUCCESS || p == nullptr || bytes == nullptr) return result;
  const unsigned index = find_device(*p, device).device;
  *bytes =
      std::min<uint64_t>(*bytes, quota(*p, index)) + (may_spill(*p, index) ? quota(*p, spilled(index)) : 0);
  return result;
}

// For programs built against CUDA 3.0, in which sizes have 32 bits.
CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  const CUresult result = driver<&cuDeviceTotalMem>(bytes, device);
  Process* p = enter().process;
  if (result != CUDA_SUCCESS || p == nullptr || bytes == nullptr) return result;
  *bytes = static_cast<unsigned>(std::min<uint64_t>(*bytes, quota(*p, find_device(*p, device).device)));
  return result;
}
