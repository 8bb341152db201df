// One mutex guards the three tables. A mapping is a second view of the same pages (mremap of a shared mapping
// with an old size of 0). So two mappings of a handle, and two processes, see the same bytes.
#include "sim/libcuda/vmm.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "sim/libcuda/heap.h"
#include "sim/libcuda/holding.h"

using namespace carve::sim;

namespace {

struct Handle {
  std::weak_ptr<Backing> backing;
  std::shared_ptr<Backing> held;  // Set while the program holds references.
  unsigned references = 0;
};
struct Mapping {
  uint64_t bytes;
  std::shared_ptr<Backing> backing;
  std::map<unsigned, CUmemAccess_flags> access;  // Access by device; max_devices is the host.
};
struct Vmm {
  std::mutex mutex;
  std::map<uint64_t, uint64_t> reservations;
  std::map<uint64_t, Mapping> mappings;
  std::unordered_map<CUmemGenericAllocationHandle, Handle> handles;
};
Vmm& vmm() {
  static auto* all = new Vmm;
  return *all;
}

bool blocks(uint64_t n) { return n && n % memory_block_bytes == 0; }

CUresult location(const CUmemLocation& l, unsigned* device, bool* host) {
  *device = 0;
  *host = l.type == CU_MEM_LOCATION_TYPE_HOST || l.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
          l.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  if (*host) return CUDA_SUCCESS;
  return l.type == CU_MEM_LOCATION_TYPE_DEVICE ? device_of(l.id, device) : CUDA_ERROR_INVALID_VALUE;
}

CUresult check(const CUmemAllocationProp* prop, unsigned* device, bool* host) {
  if (const CUresult e = entered()) return e;
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return location(prop->location, device, host);
}

// Returns the mapping that contains the address.
std::map<uint64_t, Mapping>::iterator mapping_at(uint64_t address) {
  auto it = vmm().mappings.upper_bound(address);
  if (it == vmm().mappings.begin()) return vmm().mappings.end();
  --it;
  return address - it->first < it->second.bytes ? it : vmm().mappings.end();
}

// The mappings that together cover [base, base + bytes) exactly: the first and the one past the last. Empty
// if there are none.
using Mappings = std::map<uint64_t, Mapping>;
std::pair<Mappings::iterator, Mappings::iterator> exactly(uint64_t base, uint64_t bytes) {
  const auto first = vmm().mappings.find(base);
  auto it = first;
  uint64_t at = base;
  for (; it != vmm().mappings.end() && it->first == at && at < base + bytes; ++it) at += it->second.bytes;
  return at == base + bytes ? std::pair{first, it} : std::pair{first, first};
}

}  // namespace

namespace carve::sim {

Backing::~Backing() {
  if (!shared && at) munmap(at, bytes);
  if (counted) give_bytes(device, bytes);
  if (!handle) return;
  const std::lock_guard lock(vmm().mutex);
  vmm().handles.erase(handle);
}

CUmemGenericAllocationHandle hold_backing(std::shared_ptr<Backing> b) {
  const std::lock_guard lock(vmm().mutex);
  if (!b->handle) b->handle = process().next_id.fetch_add(1);
  Handle& h = vmm().handles[b->handle];
  h.backing = b;
  h.held = std::move(b);
  ++h.references;
  return h.held->handle;
}

std::shared_ptr<Backing> find_backing(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(vmm().mutex);
  const auto found = vmm().handles.find(handle);
  return found == vmm().handles.end() ? nullptr : found->second.held;
}

std::shared_ptr<Backing> backing_at(CUdeviceptr address, uint64_t* offset) {
  const std::lock_guard lock(vmm().mutex);
  const auto it = mapping_at(address);
  if (it == vmm().mappings.end()) return nullptr;
  *offset = address - it->first;
  return it->second.backing;
}

}  // namespace carve::sim

EXPORT CUresult cuMemGetAllocationGranularity(size_t* out, const CUmemAllocationProp* prop,
                                              CUmemAllocationGranularity_flags option) {
  unsigned device = 0;
  bool host = false;
  if (const CUresult e = check(prop, &device, &host)) return e;
  if (!out || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
    return CUDA_ERROR_INVALID_VALUE;
  *out = memory_block_bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes, const CUmemAllocationProp* prop,
                            unsigned long long flags) {
  unsigned device = 0;
  bool host = false;
  if (const CUresult e = entered()) return e;
  if (!out || flags || !blocks(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = check(prop, &device, &host)) return e;
  if (bytes > 1ull << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  auto b = std::make_shared<Backing>();
  b->device = device;
  b->host = host;
  b->bytes = bytes;
  b->properties = *prop;
  if (prop->requestedHandleTypes) {
    const auto counted = host ? Shared::Counted::nowhere : Shared::Counted::for_the_process;
    if (const CUresult e = Shared::create(device, bytes, counted, nullptr, &b->shared)) return e;
    b->at = b->shared->base();
  } else {
    if (!host) {
      if (const CUresult e = take_bytes(device, bytes)) return e;
      b->counted = true;
    }
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    madvise(p, bytes, MADV_DONTFORK);
    madvise(p, bytes, MADV_DONTDUMP);
    b->at = static_cast<char*>(p);
  }
  *out = hold_backing(std::move(b));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (const CUresult e = entered()) return e;
  std::shared_ptr<Backing> dying;  // Destroyed after the lock is released.
  const std::lock_guard lock(vmm().mutex);
  const auto found = vmm().handles.find(handle);
  if (found == vmm().handles.end() || !found->second.references) return CUDA_ERROR_INVALID_VALUE;
  if (--found->second.references == 0) dying = std::move(found->second.held);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  uint64_t offset = 0;
  auto b = backing_at(reinterpret_cast<uint64_t>(address), &offset);
  if (!b) return CUDA_ERROR_INVALID_VALUE;
  *out = hold_backing(std::move(b));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* out,
                                                       CUmemGenericAllocationHandle handle) {
  if (const CUresult e = entered()) return e;
  const auto b = find_backing(handle);
  if (!out || !b || b->multicast) return CUDA_ERROR_INVALID_VALUE;
  *out = b->properties;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type, unsigned long long flags) {
  if (const CUresult e = entered()) return e;
  const auto b = find_backing(handle);
  if (!out || flags || !b) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return type == CU_MEM_HANDLE_TYPE_NONE ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  if (b->multicast) return CUDA_ERROR_NOT_SUPPORTED;
  if (!b->shared) return CUDA_ERROR_INVALID_VALUE;  // Sharing was not requested at creation.
  const int fd = b->shared->descriptor();
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* os_handle,
                                               CUmemAllocationHandleType type) {
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_HANDLE_TYPE_WIN32 || type == CU_MEM_HANDLE_TYPE_WIN32_KMT ||
      type == CU_MEM_HANDLE_TYPE_FABRIC)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  auto b = std::make_shared<Backing>();
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  if (const CUresult e = Shared::open(fd, &b->shared)) return e;
  const int visible = visible_of(b->shared->device());
  if (visible < 0) return CUDA_ERROR_INVALID_DEVICE;
  b->device = b->shared->device();
  b->bytes = b->shared->bytes();
  b->at = b->shared->base();
  b->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  b->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  b->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, visible};
  *out = hold_backing(std::move(b));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t alignment, CUdeviceptr wish,
                                    unsigned long long flags) {
  if (const CUresult e = entered()) return e;
  if (!out || flags || !blocks(bytes) || (alignment & (alignment - 1))) return CUDA_ERROR_INVALID_VALUE;
  if (wish % memory_block_bytes) wish = 0;  // The wish is not binding.
  const uint64_t base = heap_take_range(bytes, std::max<uint64_t>(alignment, memory_block_bytes), wish);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(vmm().mutex);
  vmm().reservations[base] = bytes;
  *out = base;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes) {
  if (const CUresult e = entered()) return e;
  {
    const std::lock_guard lock(vmm().mutex);
    const auto found = vmm().reservations.find(base);
    if (found == vmm().reservations.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto mapped = vmm().mappings.lower_bound(base);
    if (mapped != vmm().mappings.end() && mapped->first < base + bytes) return CUDA_ERROR_INVALID_VALUE;
    vmm().reservations.erase(found);
  }
  heap_give_range(base, bytes);
  return CUDA_SUCCESS;
}

// Mapped memory cannot be accessed before cuMemSetAccess.
EXPORT CUresult cuMemMap(CUdeviceptr base, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
  if (const CUresult e = entered()) return e;
  const auto b = find_backing(handle);
  if (!b || flags || offset || base % memory_block_bytes || !blocks(bytes) || bytes > b->bytes)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(vmm().mutex);
  auto reserved = vmm().reservations.upper_bound(base);
  if (reserved == vmm().reservations.begin()) return CUDA_ERROR_INVALID_VALUE;
  --reserved;
  const uint64_t into = base - reserved->first;
  if (into >= reserved->second || bytes > reserved->second - into) return CUDA_ERROR_INVALID_VALUE;
  const auto next = vmm().mappings.lower_bound(base);
  if (mapping_at(base) != vmm().mappings.end() ||
      (next != vmm().mappings.end() && next->first < base + bytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (b->at && !heap_attach(base, b->at, bytes, b->host)) return CUDA_ERROR_OUT_OF_MEMORY;
  vmm().mappings[base] = {bytes, b, {}};
  heap_record({.base = base, .bytes = bytes, .device = b->device, .kind = Memory::mapped, .access = 0});
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr base, size_t bytes) {
  if (const CUresult e = entered()) return e;
  for (unsigned i = 0; i < process().visible_count; ++i) wait_device(process().visible[i]);
  std::vector<std::shared_ptr<Backing>> dying;  // Destroyed after the lock is released.
  const std::lock_guard lock(vmm().mutex);
  const auto [first, last] = exactly(base, bytes);
  if (first == last) return CUDA_ERROR_INVALID_VALUE;
  for (auto it = first; it != last; ++it) {
    HeapRecord a;
    heap_strike(it->first, Memory::mapped, &a);
    heap_detach(it->first, it->second.bytes);
    dying.push_back(std::move(it->second.backing));
  }
  vmm().mappings.erase(first, last);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr base, size_t bytes, const CUmemAccessDesc* map, size_t count) {
  if (const CUresult e = entered()) return e;
  if (!map || !count) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(vmm().mutex);
  const auto [first, last] = exactly(base, bytes);
  if (first == last) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    unsigned device = 0;
    bool host = false;
    if (const CUresult e = location(map[i].location, &device, &host)) return e;
    for (auto it = first; it != last; ++it) {
      if (host && !it->second.backing->host) return CUDA_ERROR_INVALID_VALUE;
      it->second.access[host ? max_devices : device] = map[i].flags;
      unsigned any = 0;
      for (const auto& [where, flags] : it->second.access) any |= static_cast<unsigned>(flags);
      if (!it->second.backing->multicast) heap_set_access(it->first, any);
    }
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAccess(unsigned long long* out, const CUmemLocation* l, CUdeviceptr address) {
  unsigned device = 0;
  bool host = false;
  if (const CUresult e = entered()) return e;
  if (!out || !l) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = location(*l, &device, &host)) return e;
  const std::lock_guard lock(vmm().mutex);
  const auto it = mapping_at(address);
  if (it == vmm().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  const auto granted = it->second.access.find(host ? max_devices : device);
  *out = granted == it->second.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : granted->second;
  return CUDA_SUCCESS;
}
