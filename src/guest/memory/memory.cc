// Allocations that are complete when the call returns (linear, pitched, managed), their frees, and memory
// information. Host memory is not charged to a device, so its calls are not here.
#include "guest/memory/charged.h"

using namespace carve;
using namespace carve::guest;

namespace {

// Rows are padded to multiples of 512 bytes on every known device. The returned pitch corrects the
// reservation.
constexpr Bytes pitch_step = 512_B;

// Multiplies with saturation, because a product of more than 64 bits is over any quota.
Bytes area(uint64_t width, uint64_t height) {
  uint64_t product = 0;
  return {__builtin_mul_overflow(width, height, &product) ? UINT64_MAX : product};
}

void undo(CUdeviceptr pointer) { driver<&cuMemFree_v2>(pointer); }

// Counts in the unit of the caller's own pointer, which may have 32 bits.
template <class Pointer>
CUresult spilled_to(Process& p, const Current& where, uint64_t bytes, Pointer* pointer) {
  CUdeviceptr got = 0;
  const CUresult result = allocate_spilled(p, where, bytes, rounded_up({bytes}, 2_MiB), &got);
  if (result == CUDA_SUCCESS) *pointer = static_cast<Pointer>(got);
  return result;
}

// The driver zeroes the caller's results before it fails, and some programs test the pointer instead of the
// error.
template <class Result>
CUresult zeroed_on_failure(CUresult result, Result* out) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY && out != nullptr) *out = 0;
  return result;
}

template <class Call, class Pointer>
CUresult charged_linear(uint64_t bytes, Pointer* pointer, Call call) {
  const Bytes takes = charge_of({bytes});
  const CUresult result = charged(
      takes, call, [&] { return takes; }, [&] { return pointer != nullptr ? CUdeviceptr{*pointer} : 0; },
      undo, [&](Process& p, const Current& where) { return spilled_to(p, where, bytes, pointer); });
  return zeroed_on_failure(result, pointer);
}

template <class Call, class Pointer, class Pitch>
CUresult charged_pitched(uint64_t width, uint64_t height, Pointer* pointer, Pitch* pitch, Call call) {
  const Bytes row = rounded_up({width}, pitch_step), bound = charge_of(area(row.count, height));
  const CUresult taken = charged(
      bound, call, [&] { return pitch != nullptr ? charge_of(area(*pitch, height)) : bound; },
      [&] { return pointer != nullptr ? CUdeviceptr{*pointer} : 0; }, undo,
      [&](Process& p, const Current& where) {
        const CUresult result = spilled_to(p, where, area(row.count, height).count, pointer);
        if (result == CUDA_SUCCESS && pitch != nullptr) *pitch = static_cast<Pitch>(row.count);
        return result;
      });
  return zeroed_on_failure(zeroed_on_failure(taken, pointer), pitch);
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  return charged_linear(bytes, pointer, [=] { return driver<&cuMemAlloc_v2>(pointer, bytes); });
}

CUresult cuMemAlloc(CUdeviceptr_v1* pointer, unsigned int bytes) {
  return charged_linear(bytes, pointer, [=] { return driver<&cuMemAlloc>(pointer, bytes); });
}

// Managed memory is charged in full, wherever its pages are, because the slice may use all of them from the
// device.
CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int flags) {
  return charged_linear(bytes, pointer, [=] { return driver<&cuMemAllocManaged>(pointer, bytes, flags); });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
  return charged_pitched(width, height, pointer, pitch,
                         [=] { return driver<&cuMemAllocPitch_v2>(pointer, pitch, width, height, element); });
}

CUresult cuMemAllocPitch(CUdeviceptr_v1* pointer, unsigned int* pitch, unsigned int width,
                         unsigned int height, unsigned int element) {
  return charged_pitched(width, height, pointer, pitch,
                         [=] { return driver<&cuMemAllocPitch>(pointer, pitch, width, height, element); });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return released(pointer, [=] { return driver<&cuMemFree_v2>(pointer); });
}

CUresult cuMemFree(CUdeviceptr_v1 pointer) {
  return released(pointer, [=] { return driver<&cuMemFree>(pointer); });
}

// This call also accepts pointers of cuMemAlloc, in which case no other hook would release their charge.
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return released(
      pointer, [=] { return driver<&cuMemFreeAsync>(pointer, stream); }, reinterpret_cast<uint64_t>(stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return released(
      pointer, [=] { return driver<&cuMemFreeAsync_ptsz>(pointer, stream); },
      reinterpret_cast<uint64_t>(stream));
}

namespace {

// The memory that the hook reports. If the slice may spill, it includes memory beyond the quota.
struct Seen {
  uint64_t left = 0, all = 0;
};
Seen on_host(const Process& p, unsigned device) {
  if (!may_spill(p, device)) return {};
  const uint64_t all = quota(p, spilled(device));
  return {minus({all}, {used(p, spilled(device))}).count, all};
}

// If the slice has no limit, the driver's figures are unchanged. Either pointer may be null.
template <class Size>
CUresult narrowed_info(CUresult (*info)(Size*, Size*), Size* free_out, Size* total_out) {
  Process* const p = enter().process;
  if (p == nullptr) return info(free_out, total_out);
  Size free_bytes = 0, total = 0;
  const CUresult result = info(&free_bytes, &total);
  if (result == CUDA_SUCCESS) {
    const Current where = current(*p);
    const uint64_t limit = where.result == CUDA_SUCCESS ? quota(*p, where.device) : UINT64_MAX;
    if (limit != UINT64_MAX) {
      synchronized(uint64_t{0});  // Memory that pools and exports have released is free again.
      settle_shared(*p, where.device);
      const uint64_t held = used(*p, where.device);
      const Seen more = on_host(*p, where.device);
      free_bytes =
          static_cast<Size>(std::min<uint64_t>(free_bytes, minus({limit}, {held}).count) + more.left);
      total = static_cast<Size>(std::min<uint64_t>(total, limit) + more.all);
    }
  }
  if (free_out != nullptr) *free_out = free_bytes;
  if (total_out != nullptr) *total_out = total;
  return result;
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  return narrowed_info<size_t>([](size_t* f, size_t* t) { return driver<&cuMemGetInfo_v2>(f, t); },
                               free_bytes, total);
}

CUresult cuMemGetInfo(unsigned int* free_bytes, unsigned int* total) {
  return narrowed_info<unsigned>([](unsigned* f, unsigned* t) { return driver<&cuMemGetInfo>(f, t); },
                                 free_bytes, total);
}
