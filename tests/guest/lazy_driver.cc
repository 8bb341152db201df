// A library that defines the driver's names itself and loads the driver at the first call, like TensorFlow.
// (The names of a preloaded library come first.) lazy_total() returns the result of cuDeviceTotalMem for
// device 0, or minus the first error.
#include <dlfcn.h>

#include "abi/cuda.h"

namespace {

// CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND means that the driver cannot be loaded.
template <class Entry, class... A>
CUresult forward(Entry, const char* name, A... a) {
  static void* const library = dlopen("libcuda.so.1", RTLD_LAZY);
  const auto entry = library != nullptr ? reinterpret_cast<Entry>(dlsym(library, name)) : nullptr;
  return entry != nullptr ? entry(a...) : CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}

}  // namespace

extern "C" {
[[gnu::visibility("default")]] CUresult cuInit(unsigned flags) { return forward(&cuInit, "cuInit", flags); }
[[gnu::visibility("default")]] CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return forward(&cuDeviceTotalMem_v2, "cuDeviceTotalMem_v2", bytes, device);
}
long lazy_total() {
  size_t total = 0;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceTotalMem_v2(&total, 0);
  return result == CUDA_SUCCESS ? static_cast<long>(total) : -static_cast<long>(result);
}
}
