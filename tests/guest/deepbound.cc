// A library that links the driver, for escape.cc. Opened with RTLD_DEEPBIND, its own scope precedes preloaded
// libraries.
#include "abi/cuda.h"

extern "C" {
CUresult deepbound_cuInit(unsigned flags) { return cuInit(flags); }
CUresult deepbound_cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}
CUresult deepbound_cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) { return cuMemAlloc_v2(out, bytes); }
}
