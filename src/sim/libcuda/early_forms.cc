// The forms before CUDA 3.2, whose device pointers and sizes have 32 bits, and contexts for OpenGL and VDPAU.
// The simulator's addresses are longer, so these calls are not simulated. They check their arguments as
// NVIDIA's driver 550 does and then return CUDA_ERROR_NOT_SUPPORTED. Other calls that are not simulated have
// no definition (sim/drivers/exports.cmake).
#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/schedule.h"

using namespace carve::sim;

namespace {

// `amounts` are the caller's variables, which are set to 0.
template <class... Amount>
CUresult with_context(const char* name, Amount*... amounts) {
  if (const CUresult e = entered()) return e;
  for (unsigned* amount : {static_cast<unsigned*>(nullptr), static_cast<unsigned*>(amounts)...})
    if (amount) *amount = 0;
  const CUresult e = has_context();
  return e ? e : unsupported(name);
}

CUresult in_stream(const char* name, CUstream handle) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  const CUresult e = stream_of(handle, &c, &stream);
  return e ? e : unsupported(name);
}

CUresult for_device(const char* name, const void* out, CUdevice visible) {
  unsigned device = 0;
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const CUresult e = device_of(visible, &device);
  return e ? e : unsupported(name);
}

}  // namespace

EXPORT CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  if (bytes && entered() == CUDA_SUCCESS) *bytes = 0;
  return for_device("cuDeviceTotalMem", bytes, device);
}
EXPORT CUresult cuGLCtxCreate(CUcontext* out, unsigned int, CUdevice device) {
  return for_device("cuGLCtxCreate", out, device);
}
EXPORT CUresult cuGLCtxCreate_v2(CUcontext* out, unsigned int, CUdevice device) {
  return for_device("cuGLCtxCreate_v2", out, device);
}
EXPORT CUresult cuVDPAUCtxCreate(CUcontext* out, unsigned int, CUdevice device, void*, void*) {
  return for_device("cuVDPAUCtxCreate", out, device);
}
EXPORT CUresult cuVDPAUCtxCreate_v2(CUcontext* out, unsigned int, CUdevice device, void*, void*) {
  return for_device("cuVDPAUCtxCreate_v2", out, device);
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1* out, unsigned int) { return with_context("cuMemAlloc", out); }
EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1* out, unsigned int* pitch, unsigned int, unsigned int,
                                unsigned int) {
  return with_context("cuMemAllocPitch", out, pitch);
}
EXPORT CUresult cuMemFree(CUdeviceptr_v1 pointer) { return cuMemFree_v2(pointer); }
EXPORT CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  return with_context("cuMemGetInfo", free, total);
}

EXPORT CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1*, CUstream s) {
  return in_stream("cuMemcpy2DAsync", s);
}
EXPORT CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1*, CUstream s) {
  return in_stream("cuMemcpy3DAsync", s);
}
EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1, const void*, unsigned int, CUstream s) {
  return in_stream("cuMemcpyHtoDAsync", s);
}
EXPORT CUresult cuMemcpyDtoHAsync(void*, CUdeviceptr_v1, unsigned int, CUstream s) {
  return in_stream("cuMemcpyDtoHAsync", s);
}
EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1, CUdeviceptr_v1, unsigned int, CUstream s) {
  return in_stream("cuMemcpyDtoDAsync", s);
}
