// The driver as these programs use it: opened by name, with each entry looked up with dlsym, as in any
// program outside of NVIDIA's runtime. The exit status is 77 if this machine has no driver or no such entry.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "abi/cuda.h"

namespace carve::gpu {

template <class F>
F* entry(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) {
    std::fprintf(stderr, "no %s\n", library != nullptr ? name : dlerror());
    std::exit(77);
  }
  return reinterpret_cast<F*>(found);
}
#define CU(name) ::carve::gpu::entry<decltype(::name)>(#name)

inline void must_at(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "line %d: %s: error %d\n", line, call, static_cast<int>(result));
  std::exit(result == CUDA_ERROR_NOT_SUPPORTED ? 77 : 1);
}
#define MUST(call) ::carve::gpu::must_at(call, #call, __LINE__)

inline CUcontext begin() {
  CUcontext context = nullptr;
  MUST(CU(cuInit)(0));
  MUST(CU(cuCtxCreate_v2)(&context, 0, 0));
  return context;
}

inline size_t free_bytes() {
  size_t free = 0, total = 0;
  MUST(CU(cuMemGetInfo_v2)(&free, &total));
  return free;
}

}  // namespace carve::gpu
