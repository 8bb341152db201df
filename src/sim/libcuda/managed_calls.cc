// The calls about managed memory; the rules are in managed.h. A prefetch occupies a copy engine for its
// duration, in stream order.
#include "sim/libcuda/capture.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/managed.h"
#include "sim/libcuda/schedule.h"

using namespace carve::sim;

namespace {

// Returns the given context if it is on the device, otherwise the primary context, otherwise any context of
// this process there, or null if there is none.
std::shared_ptr<CUctx_st> context_on(unsigned device, const std::shared_ptr<CUctx_st>& first) {
  if (first->device == device) return first;
  const std::lock_guard lock(process().mutex);
  if (const auto& primary = process().primaries[device].context) return primary;
  for (const auto& [handle, c] : process().contexts)
    if (c->device == device && !c->destroyed.load()) return c;
  return nullptr;
}

CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, const CUmemLocation& location) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  return managed_advise(address, bytes, advice, location);
}

// Checks the arguments of the _v2 forms, as the driver does before it looks for a context.
bool is_location(const CUmemLocation& l) {
  return l.type >= CU_MEM_LOCATION_TYPE_DEVICE && l.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}
bool is_advice(CUmem_advise advice, const CUmemLocation& l) {
  const bool reads_mostly =
      advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY;
  return advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY &&
         (is_location(l) || (reads_mostly && l.type == CU_MEM_LOCATION_TYPE_NONE));
}

struct Range {
  CUdeviceptr address;
  size_t bytes;
  CUmemLocation to;
};

// Prefetches all ranges in one operation. With `discard`, the old contents are not copied.
CUresult prefetch(const std::vector<Range>& ranges, CUstream handle, bool discard = false) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  if (const CUresult e = refuse_wait(*stream)) return e;
  for (const Range& r : ranges) {
    HeapRecord a;
    if (const CUresult e = check_location(r.to)) return e;
    if (!r.bytes || !heap_find(r.address, &a) || a.kind != Memory::managed) return CUDA_ERROR_INVALID_VALUE;
  }
  Op op = {};
  op.kind = OpKind::mark;
  uint64_t bytes = 0;
  for (const Range& r : ranges) {
    std::shared_ptr<CUctx_st> to;
    unsigned device = 0;
    if (r.to.type == CU_MEM_LOCATION_TYPE_DEVICE && device_of(r.to.id, &device) == CUDA_SUCCESS)
      to = context_on(device, c);
    uint64_t moved = 0;
    if (const CUresult e = managed_prefetch(r.address, r.bytes, r.to, to.get(), &moved)) return e;
    if (moved && !discard) op.kind = to ? OpKind::to_device : OpKind::to_host;
    bytes += moved;
  }
  if (op.kind != OpKind::mark) op.duration_ns = copy_time(c->own_device(), op.kind, bytes);
  return submit(*c, stream->channel, op, nullptr);
}

CUresult prefetch_batch(const CUdeviceptr* addresses, const size_t* sizes, size_t count,
                        const CUmemLocation* locations, const size_t* first_of, size_t location_count,
                        unsigned long long flags, CUstream stream, bool discard) {
  if (const CUresult e = entered()) return e;
  if (!addresses || !sizes || !locations || !first_of || !count || !location_count ||
      location_count > count || first_of[0] != 0 || flags)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<Range> ranges;
  size_t location = 0;
  for (size_t i = 0; i < count; ++i) {
    while (location + 1 < location_count && first_of[location + 1] <= i) ++location;
    ranges.push_back({addresses[i], sizes[i], locations[location]});
  }
  return prefetch(ranges, stream, discard);
}

CUresult discard_batch(const CUdeviceptr* addresses, const size_t* sizes, size_t count,
                       unsigned long long flags, CUstream handle) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  if (const CUresult e = refuse_wait(*stream)) return e;
  if (!addresses || !sizes || !count || flags) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    if (const CUresult e = managed_discard(addresses[i], sizes[i])) return e;
  Op op = {};
  op.kind = OpKind::mark;
  return submit(*c, stream->channel, op, nullptr);
}

CUresult attach(CUstream handle, CUdeviceptr address, size_t bytes, unsigned flags) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  HeapRecord a;
  if (!heap_find(address, &a) || a.kind != Memory::managed || (bytes && bytes != a.bytes) ||
      (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE))
    return CUDA_ERROR_INVALID_VALUE;
  Op op = {};
  op.kind = OpKind::mark;
  return submit(*c, stream->channel, op, nullptr);
}

}  // namespace

EXPORT CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = entered()) return e;
  if (out) *out = 0;
  if (!out || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = current(&c)) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  uint64_t base = 0;
  const CUresult e = heap_allocate_managed(*c, bytes, flags, &base);
  if (e == CUDA_SUCCESS) *out = base;
  return e;
}

EXPORT CUresult cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice device) {
  return advise(p, n, advice, location_of(device));
}
EXPORT CUresult cuMemAdvise_v2(CUdeviceptr p, size_t n, CUmem_advise advice, CUmemLocation location) {
  if (const CUresult e = entered()) return e;
  if (!is_advice(advice, location)) return CUDA_ERROR_INVALID_VALUE;
  return advise(p, n, advice, location);
}

EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice device, CUstream s) {
  return prefetch({{p, n, location_of(device)}}, s);
}
EXPORT CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr p, size_t n, CUdevice device, CUstream s) {
  return prefetch({{p, n, location_of(device)}}, per_thread(s));
}
EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t n, CUmemLocation location, unsigned int flags,
                                      CUstream s) {
  if (const CUresult e = entered()) return e;
  return flags || !is_location(location) ? CUDA_ERROR_INVALID_VALUE : prefetch({{p, n, location}}, s);
}
EXPORT CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr p, size_t n, CUmemLocation location,
                                           unsigned int flags, CUstream s) {
  return cuMemPrefetchAsync_v2(p, n, location, flags, per_thread(s));
}

EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr* p, size_t* n, size_t count, CUmemLocation* locations,
                                        size_t* first_of, size_t location_count, unsigned long long flags,
                                        CUstream s) {
  return prefetch_batch(p, n, count, locations, first_of, location_count, flags, s, false);
}
EXPORT CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* p, size_t* n, size_t count,
                                             CUmemLocation* locations, size_t* first_of,
                                             size_t location_count, unsigned long long flags, CUstream s) {
  return prefetch_batch(p, n, count, locations, first_of, location_count, flags, per_thread(s), false);
}
EXPORT CUresult cuMemDiscardBatchAsync(CUdeviceptr* p, size_t* n, size_t count, unsigned long long flags,
                                       CUstream s) {
  return discard_batch(p, n, count, flags, s);
}
EXPORT CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr* p, size_t* n, size_t count, unsigned long long flags,
                                            CUstream s) {
  return discard_batch(p, n, count, flags, per_thread(s));
}
EXPORT CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* p, size_t* n, size_t count,
                                                  CUmemLocation* locations, size_t* first_of,
                                                  size_t location_count, unsigned long long flags,
                                                  CUstream s) {
  return prefetch_batch(p, n, count, locations, first_of, location_count, flags, s, true);
}
EXPORT CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr* p, size_t* n, size_t count,
                                                       CUmemLocation* locations, size_t* first_of,
                                                       size_t location_count, unsigned long long flags,
                                                       CUstream s) {
  return prefetch_batch(p, n, count, locations, first_of, location_count, flags, per_thread(s), true);
}

EXPORT CUresult cuMemRangeGetAttribute(void* out, size_t out_bytes, CUmem_range_attribute which,
                                       CUdeviceptr p, size_t n) {
  const CUresult e = entered();
  return e ? e : managed_attribute(p, n, which, out, out_bytes);
}
EXPORT CUresult cuMemRangeGetAttributes(void** out, size_t* out_bytes, CUmem_range_attribute* which,
                                        size_t count, CUdeviceptr p, size_t n) {
  if (const CUresult e = entered()) return e;
  if (!out || !out_bytes || !which || !count) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    if (const CUresult e = managed_attribute(p, n, which[i], out[i], out_bytes[i])) return e;
  return CUDA_SUCCESS;
}

// The stream attachment has an effect only on devices without CONCURRENT_MANAGED_ACCESS.
EXPORT CUresult cuStreamAttachMemAsync(CUstream s, CUdeviceptr p, size_t n, unsigned int flags) {
  return attach(s, p, n, flags);
}
EXPORT CUresult cuStreamAttachMemAsync_ptsz(CUstream s, CUdeviceptr p, size_t n, unsigned int flags) {
  return attach(per_thread(s), p, n, flags);
}
