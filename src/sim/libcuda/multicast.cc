// The handle has the type of cuMemCreate's handles, so vmm.cc maps and releases it.
#include "sim/libcuda/multicast.h"

#include <algorithm>

using namespace carve::sim;

namespace {

// Returns CUDA_ERROR_NOT_SUPPORTED if no device supports multicast. Checked before any argument is read.
CUresult some_device() {
  if (const CUresult e = entered()) return e;
  const Process& p = process();
  for (unsigned i = 0; i < p.visible_count; ++i)
    if (supports_multicast(p.set.devices[p.visible[i]]->facts)) return CUDA_SUCCESS;
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult check(const CUmulticastObjectProp* prop) {
  if (const CUresult e = some_device()) return e;
  if (!prop || prop->numDevices == 0 || prop->numDevices > process().visible_count || prop->flags ||
      prop->size == 0 || prop->size % memory_block_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (prop->handleTypes & ~uint64_t{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR})
    return CUDA_ERROR_NOT_SUPPORTED;
  const Process& p = process();
  const auto able = std::ranges::count_if(p.visible, p.visible + p.visible_count, [&](unsigned device) {
    return supports_multicast(p.set.devices[device]->facts);
  });
  return static_cast<unsigned>(able) >= prop->numDevices ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult find(CUmemGenericAllocationHandle handle, std::shared_ptr<Backing>* out) {
  if (const CUresult e = some_device()) return e;
  *out = find_backing(handle);
  return *out && (*out)->multicast ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool whole_blocks(uint64_t n) { return n % memory_block_bytes == 0; }
bool inside(uint64_t offset, uint64_t bytes, uint64_t all) { return bytes <= all && offset <= all - bytes; }

// Binds memory to the object. Each device binds its own memory to each part of the object once.
CUresult bind(CUmemGenericAllocationHandle handle, uint64_t offset, std::shared_ptr<Backing> memory,
              uint64_t memory_offset, uint64_t bytes, unsigned long long flags) {
  std::shared_ptr<Backing> object;
  if (const CUresult e = find(handle, &object)) return e;
  if (!memory || memory->multicast || memory->host || flags || bytes == 0 || !whole_blocks(offset) ||
      !whole_blocks(memory_offset) || !whole_blocks(bytes) || !inside(offset, bytes, object->bytes) ||
      !inside(memory_offset, bytes, memory->bytes))
    return CUDA_ERROR_INVALID_VALUE;
  Multicast& m = *object->multicast;
  const std::lock_guard lock(m.mutex);
  if (m.devices.size() != m.team || std::ranges::find(m.devices, memory->device) == m.devices.end())
    return CUDA_ERROR_INVALID_VALUE;
  for (const Multicast::Bound& b : m.bound)
    if (b.device == memory->device && offset < b.offset + b.bytes && b.offset < offset + bytes)
      return CUDA_ERROR_INVALID_VALUE;
  const unsigned device = memory->device;
  m.bound.push_back({device, offset, bytes, std::move(memory)});
  return CUDA_SUCCESS;
}

}  // namespace

namespace carve::sim {

bool supports_multicast(const Facts& f) { return f.cc_major >= 9 && f.nvlinks > 0; }

}  // namespace carve::sim

EXPORT CUresult cuMulticastGetGranularity(size_t* out, const CUmulticastObjectProp* prop,
                                          CUmulticastGranularity_flags option) {
  if (const CUresult e = check(prop)) return e;
  if (!out || (option != CU_MULTICAST_GRANULARITY_MINIMUM && option != CU_MULTICAST_GRANULARITY_RECOMMENDED))
    return CUDA_ERROR_INVALID_VALUE;
  *out = memory_block_bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle* out, const CUmulticastObjectProp* prop) {
  if (const CUresult e = check(prop)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  auto b = std::make_shared<Backing>();
  b->bytes = prop->size;
  b->multicast = std::make_shared<Multicast>();
  b->multicast->team = prop->numDevices;
  *out = hold_backing(std::move(b));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice visible) {
  std::shared_ptr<Backing> object;
  unsigned device = 0;
  if (const CUresult e = find(handle, &object)) return e;
  if (const CUresult e = device_of(visible, &device)) return e;
  if (!supports_multicast(process().set.devices[device]->facts)) return CUDA_ERROR_NOT_SUPPORTED;
  Multicast& m = *object->multicast;
  const std::lock_guard lock(m.mutex);
  if (m.devices.size() == m.team || std::ranges::find(m.devices, device) != m.devices.end())
    return CUDA_ERROR_INVALID_VALUE;
  m.devices.push_back(device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                                   CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
                                   unsigned long long flags) {
  if (const CUresult e = entered()) return e;
  return bind(handle, offset, find_backing(memory), memory_offset, bytes, flags);
}

// The versions of CUDA 13.1, which also name the memory's device. Memory has only one device here.
EXPORT CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                                      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
                                      unsigned long long flags) {
  unsigned i = 0;
  if (const CUresult e = device_of(device, &i)) return e;
  return bind(handle, offset, find_backing(memory), memory_offset, bytes, flags);
}

EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr address,
                                    size_t bytes, unsigned long long flags) {
  if (const CUresult e = entered()) return e;
  uint64_t into = 0;
  auto memory = backing_at(address, &into);
  return bind(handle, offset, std::move(memory), into, bytes, flags);
}
EXPORT CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                                       CUdeviceptr address, size_t bytes, unsigned long long flags) {
  unsigned i = 0;
  if (const CUresult e = device_of(device, &i)) return e;
  return cuMulticastBindAddr(handle, offset, address, bytes, flags);
}

EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice visible, size_t offset,
                                  size_t bytes) {
  std::shared_ptr<Backing> object;
  unsigned device = 0;
  if (const CUresult e = find(handle, &object)) return e;
  if (const CUresult e = device_of(visible, &device)) return e;
  if (bytes == 0 || !whole_blocks(offset) || !whole_blocks(bytes) || !inside(offset, bytes, object->bytes))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::shared_ptr<Backing>> dying;  // Destroyed after the lock is released.
  Multicast& m = *object->multicast;
  const std::lock_guard lock(m.mutex);
  std::erase_if(m.bound, [&](Multicast::Bound& b) {
    if (b.device != device || b.offset < offset || b.offset + b.bytes > offset + bytes) return false;
    dying.push_back(std::move(b.memory));
    return true;
  });
  return dying.empty() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
