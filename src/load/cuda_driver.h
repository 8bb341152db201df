// The CUDA driver as seen by a user's program: libcuda.so.1 is opened at run time, and each entry point is
// looked up by name, either with dlsym or through cuGetProcAddress, as the CUDA runtime does.
#pragma once

#include <stdexcept>
#include <string>

#include "abi/cuda.h"

namespace carve::load {

enum class Lookup { dlsym, getproc };

// Every entry point that this program calls, with the type of its declaration.
// clang-format off
#define CARVE_LOAD_ENTRIES(X) \
  X(cuInit) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount) X(cuDeviceGet) \
  X(cuDeviceGetUuid) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) \
  X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuMemAlloc_v2) X(cuMemAllocPitch_v2) \
  X(cuMemAllocManaged) X(cuMemFree_v2) X(cuMemGetInfo_v2) X(cuMemsetD32_v2) X(cuMemcpyHtoD_v2) \
  X(cuMemcpyDtoH_v2) X(cuMemcpyHtoDAsync_v2) X(cuMemcpyDtoHAsync_v2) X(cuMemAllocHost_v2) \
  X(cuMemFreeHost) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuModuleUnload) X(cuLaunchKernel) \
  X(cuLaunchCooperativeKernel) X(cuStreamCreate) X(cuStreamDestroy_v2) \
  X(cuStreamSynchronize) X(cuEventCreate) X(cuEventRecord) X(cuEventSynchronize) \
  X(cuEventElapsedTime) X(cuEventDestroy_v2) X(cuGraphCreate) \
  X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy)
// Entry points that drivers before CUDA 12 (470) lack. They are null there; `required` checks them first.
#define CARVE_LOAD_LATER_ENTRIES(X) X(cuLaunchKernelEx) X(cuGraphAddKernelNode_v2)
// clang-format on

struct Driver {
#define X(entry) decltype(&::entry) entry = nullptr;
  CARVE_LOAD_ENTRIES(X)
  CARVE_LOAD_LATER_ENTRIES(X)
#undef X
};

// A call that the driver refused: the call, and the driver's name for the error.
struct Refused : std::runtime_error {
  Refused(const Driver& driver, CUresult result, const std::string& what);
  std::string name;  // "CUDA_ERROR_OUT_OF_MEMORY"
  CUresult result;
};

// No driver was found, or it lacks a required entry point.
struct NoDriver : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Driver open_driver(Lookup lookup);

// Returns an entry of CARVE_LOAD_LATER_ENTRIES. Throws NoDriver if the driver lacks it.
template <class Entry>
Entry required(Entry entry, const char* name) {
  if (entry == nullptr) throw NoDriver(std::string("this driver has no ") + name + " (CUDA 12)");
  return entry;
}

}  // namespace carve::load
