// Copies between one-dimensional arrays and linear memory; the forms with more dimensions are in copy.cc.
// Offsets are in bytes. The forms before CUDA 3.2 are only included if they have no device pointer, because
// device pointers had 32 bits and current addresses are longer.
#include "sim/libcuda/array.h"
#include "sim/libcuda/schedule.h"
#include "sim/libcuda/step.h"

using namespace carve::sim;

namespace {

// One side of a copy: an array and an offset in it, or an address.
struct End {
  CUmemorytype type;
  CUarray array = nullptr;
  size_t offset = 0;
  uint64_t address = 0;
};
End in(CUarray a, size_t offset) { return {CU_MEMORYTYPE_ARRAY, a, offset, 0}; }
End at(CUdeviceptr p) { return {CU_MEMORYTYPE_DEVICE, nullptr, 0, p}; }
End host(const void* p) { return {CU_MEMORYTYPE_HOST, nullptr, 0, reinterpret_cast<uint64_t>(p)}; }

CUresult one_dimensional(const End& e) {
  if (e.type != CU_MEMORYTYPE_ARRAY) return CUDA_SUCCESS;
  const auto a = find_array(e.array);
  if (!a) return CUDA_ERROR_INVALID_HANDLE;
  return a->descriptor.Height || a->descriptor.Depth ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult line(const End& to, const End& from, size_t bytes, CUstream s, bool wait) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(s, &c, &stream)) return e;
  if (const CUresult e = one_dimensional(to)) return e;
  if (const CUresult e = one_dimensional(from)) return e;
  CUDA_MEMCPY3D m = {};
  m.srcMemoryType = from.type, m.srcArray = from.array, m.srcXInBytes = from.offset;
  m.srcDevice = from.address, m.srcHost = reinterpret_cast<const void*>(from.address);
  m.dstMemoryType = to.type, m.dstArray = to.array, m.dstXInBytes = to.offset;
  m.dstDevice = to.address, m.dstHost = reinterpret_cast<void*>(to.address);
  m.WidthInBytes = bytes, m.Height = m.Depth = 1;
  return move(m, s, wait);
}

}  // namespace

EXPORT CUresult cuMemcpyDtoA_v2(CUarray a, size_t o, CUdeviceptr p, size_t n) {
  return line(in(a, o), at(p), n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyDtoA_v2_ptds(CUarray a, size_t o, CUdeviceptr p, size_t n) {
  return line(in(a, o), at(p), n, per_thread_default(), true);
}
EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr p, CUarray a, size_t o, size_t n) {
  return line(at(p), in(a, o), n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr p, CUarray a, size_t o, size_t n) {
  return line(at(p), in(a, o), n, per_thread_default(), true);
}
EXPORT CUresult cuMemcpyHtoA_v2(CUarray a, size_t o, const void* p, size_t n) {
  return line(in(a, o), host(p), n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyHtoA_v2_ptds(CUarray a, size_t o, const void* p, size_t n) {
  return line(in(a, o), host(p), n, per_thread_default(), true);
}
EXPORT CUresult cuMemcpyHtoA(CUarray a, unsigned o, const void* p, unsigned n) {
  return line(in(a, o), host(p), n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyAtoH_v2(void* p, CUarray a, size_t o, size_t n) {
  return line(host(p), in(a, o), n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyAtoH_v2_ptds(void* p, CUarray a, size_t o, size_t n) {
  return line(host(p), in(a, o), n, per_thread_default(), true);
}
EXPORT CUresult cuMemcpyAtoH(void* p, CUarray a, unsigned o, unsigned n) {
  return line(host(p), in(a, o), n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyAtoA_v2(CUarray to, size_t t, CUarray from, size_t f, size_t n) {
  return line(in(to, t), in(from, f), n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyAtoA_v2_ptds(CUarray to, size_t t, CUarray from, size_t f, size_t n) {
  return line(in(to, t), in(from, f), n, per_thread_default(), true);
}
EXPORT CUresult cuMemcpyAtoA(CUarray to, unsigned t, CUarray from, unsigned f, unsigned n) {
  return line(in(to, t), in(from, f), n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyHtoAAsync_v2(CUarray a, size_t o, const void* p, size_t n, CUstream s) {
  return line(in(a, o), host(p), n, s, false);
}
EXPORT CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray a, size_t o, const void* p, size_t n, CUstream s) {
  return line(in(a, o), host(p), n, per_thread(s), false);
}
EXPORT CUresult cuMemcpyHtoAAsync(CUarray a, unsigned o, const void* p, unsigned n, CUstream s) {
  return line(in(a, o), host(p), n, s, false);
}
EXPORT CUresult cuMemcpyAtoHAsync_v2(void* p, CUarray a, size_t o, size_t n, CUstream s) {
  return line(host(p), in(a, o), n, s, false);
}
EXPORT CUresult cuMemcpyAtoHAsync_v2_ptsz(void* p, CUarray a, size_t o, size_t n, CUstream s) {
  return line(host(p), in(a, o), n, per_thread(s), false);
}
EXPORT CUresult cuMemcpyAtoHAsync(void* p, CUarray a, unsigned o, unsigned n, CUstream s) {
  return line(host(p), in(a, o), n, s, false);
}
