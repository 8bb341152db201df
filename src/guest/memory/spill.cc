#include "guest/memory/spill.h"
#include "guest/linkage/ensure.h"

#include "guest/launch/paced_copy.h"
#include "guest/memory/charged.h"
#include "guest/memory/location.h"

namespace carve::guest {
namespace {

constexpr uint64_t step = 2 << 20;

bool can_share(CUdevice ordinal) {
  int value = 0;
  return driver<&cuDeviceGetAttribute>(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, ordinal) ==
             CUDA_SUCCESS &&
         value != 0;
}

// Returns the unused part of the quota, rounded down to whole steps.
uint64_t room(const Process& p, unsigned device) {
  return minus({quota(p, device)}, {used(p, device)}).count / step * step;
}

bool advised(CUdeviceptr at, uint64_t bytes, uint64_t on_device, CUdevice ordinal) {
  const uint64_t rest = bytes - std::min(bytes, on_device);
  const CUdeviceptr from = at + on_device;
  return (on_device == 0 ||
          driver<&cuMemAdvise>(at, std::min(bytes, on_device), CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                               ordinal) == CUDA_SUCCESS) &&
         (rest == 0 ||
          (driver<&cuMemAdvise>(from, rest, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU) ==
               CUDA_SUCCESS &&
           driver<&cuMemAdvise>(from, rest, CU_MEM_ADVISE_SET_ACCESSED_BY, ordinal) == CUDA_SUCCESS));
}

// Returns whether any of the memory at the address was spilled. Programs without spilled memory pay one load.
bool is_spilled(CUdeviceptr address) {
  Process* p = attached();
  if (p == nullptr || p->spilled_count.load(std::memory_order_relaxed) == 0) return false;
  CUdeviceptr start = 0;
  Record record;
  return driver<&cuPointerGetAttribute>(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) ==
             CUDA_SUCCESS &&
         p->on_host.find(start, &record);
}

}  // namespace

CUresult allocate_spilled(Process& p, const Current& where, uint64_t bytes, Bytes takes,
                          CUdeviceptr* pointer) {
  CUdevice ordinal = 0;
  if (pointer == nullptr || !may_spill(p, where.device) ||
      driver<&cuCtxGetDevice>(&ordinal) != CUDA_SUCCESS || !can_share(ordinal))
    return refused_by_quota(p);
  // Other processes may take the rest of the quota first. Then request less and less, and finally nothing.
  uint64_t near = std::min(room(p, where.device), takes.count);
  Reservation on_device(p, where.device, {near});
  for (unsigned tries = 0; !on_device && tries < 64; ++tries) {
    near = tries < 32 ? std::min(near, room(p, where.device)) : near / 2 / step * step;
    on_device.ask({near});
  }
  Reservation on_host(p, spilled(where.device), {takes.count - near});
  if (!on_device || !on_host) return refused_by_quota(p);
  const CUresult result = driver<&cuMemAllocManaged>(pointer, bytes, CU_MEM_ATTACH_GLOBAL);
  if (result != CUDA_SUCCESS) return result;
  Record previous;
  const Record rest = record_of(*pointer, reinterpret_cast<uint64_t>(where.context), on_host.charge());
  if (advised(*pointer, bytes, near, ordinal) && p.on_host.put(rest, &previous)) {
    p.spilled_count.fetch_add(1, std::memory_order_relaxed);
    on_host.keep();
    unspill(p, previous);
    if (remember(p, p.allocations, *pointer, where.context, on_device)) return CUDA_SUCCESS;
    unspill(p, lift_spilled(p, *pointer));
  }
  driver<&cuMemFree_v2>(*pointer);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

Record lift_spilled(Process& p, CUdeviceptr pointer) {
  Record record;
  if (p.spilled_count.load(std::memory_order_relaxed) == 0 || !p.on_host.take(pointer, &record)) return {};
  return record;
}

void unspill(Process& p, const Record& lifted) {
  if (lifted.key == 0) return;
  p.spilled_count.fetch_sub(1, std::memory_order_relaxed);
  give_back(p, lifted.charge());
}

void put_back(Process& p, const Record& lifted) {
  Record previous;
  // Its slot was just freed. If the record cannot be stored, the bytes stay charged.
  if (lifted.key != 0) static_cast<void>(ensure(p.on_host.put(lifted, &previous)));
}

void unspill_all_of(Process& p, uint64_t context) {
  if (p.spilled_count.load(std::memory_order_relaxed) == 0) return;
  p.on_host.take_all_of(context, [&](const Record& r) {
    p.spilled_count.fetch_sub(1, std::memory_order_relaxed);
    give_back(p, r.charge());
  });
}

}  // namespace carve::guest

using namespace carve;
using namespace carve::guest;

namespace {

// Counts an upper bound: memory that is already at the destination does not move.
Copy prefetched(uint64_t bytes, bool to_host) {
  return {to_host ? Direction::to_host : Direction::to_device, bytes, legacy_stream};
}

// Returns whether the advice is ignored. All advice except access rights is ignored. A preferred location or
// read copies would move the memory to the device.
bool passed_over(CUdeviceptr at, CUmem_advise advice) {
  return advice != CU_MEM_ADVISE_SET_ACCESSED_BY && advice != CU_MEM_ADVISE_UNSET_ACCESSED_BY &&
         is_spilled(at);
}

bool any_spilled(const CUdeviceptr* pointers, size_t count) {
  return pointers != nullptr && std::any_of(pointers, pointers + count, is_spilled);
}

}  // namespace

CUresult cuMemAdvise(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUdevice device) {
  if (passed_over(at, advice)) return CUDA_SUCCESS;
  return driver<&cuMemAdvise>(at, bytes, advice, device);
}

CUresult cuMemAdvise_v2(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  if (passed_over(at, advice)) return CUDA_SUCCESS;
  return driver<&cuMemAdvise_v2>(at, bytes, advice, location);
}

CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream) {
  if (device != CU_DEVICE_CPU && is_spilled(at)) return CUDA_SUCCESS;
  return copied(prefetched(bytes, device == CU_DEVICE_CPU),
                [=] { return driver<&cuMemPrefetchAsync>(at, bytes, device, stream); });
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream) {
  if (device != CU_DEVICE_CPU && is_spilled(at)) return CUDA_SUCCESS;
  return copied(prefetched(bytes, device == CU_DEVICE_CPU),
                [=] { return driver<&cuMemPrefetchAsync_ptsz>(at, bytes, device, stream); });
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t bytes, CUmemLocation location, unsigned int flags,
                               CUstream stream) {
  if (is_on_device(location) && is_spilled(at)) return CUDA_SUCCESS;
  return copied(prefetched(bytes, !is_on_device(location)),
                [=] { return driver<&cuMemPrefetchAsync_v2>(at, bytes, location, flags, stream); });
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr at, size_t bytes, CUmemLocation location, unsigned int flags,
                                    CUstream stream) {
  if (is_on_device(location) && is_spilled(at)) return CUDA_SUCCESS;
  return copied(prefetched(bytes, !is_on_device(location)),
                [=] { return driver<&cuMemPrefetchAsync_v2_ptsz>(at, bytes, location, flags, stream); });
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* pointers, size_t* sizes, size_t count, CUmemLocation* locations,
                                 size_t* indexes, size_t location_count, unsigned long long flags,
                                 CUstream stream) {
  if (any_spilled(pointers, count)) return CUDA_SUCCESS;
  return driver<&cuMemPrefetchBatchAsync>(pointers, sizes, count, locations, indexes, location_count, flags,
                                          stream);
}

CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                      CUmemLocation* locations, size_t* indexes, size_t location_count,
                                      unsigned long long flags, CUstream stream) {
  if (any_spilled(pointers, count)) return CUDA_SUCCESS;
  return driver<&cuMemPrefetchBatchAsync_ptsz>(pointers, sizes, count, locations, indexes, location_count,
                                               flags, stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                           CUmemLocation* locations, size_t* indexes, size_t location_count,
                                           unsigned long long flags, CUstream stream) {
  if (any_spilled(pointers, count)) return CUDA_SUCCESS;
  return driver<&cuMemDiscardAndPrefetchBatchAsync>(pointers, sizes, count, locations, indexes,
                                                    location_count, flags, stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                                CUmemLocation* locations, size_t* indexes,
                                                size_t location_count, unsigned long long flags,
                                                CUstream stream) {
  if (any_spilled(pointers, count)) return CUDA_SUCCESS;
  return driver<&cuMemDiscardAndPrefetchBatchAsync_ptsz>(pointers, sizes, count, locations, indexes,
                                                         location_count, flags, stream);
}
