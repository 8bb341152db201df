// A program that bypasses a preloaded library in the ways that glibc allows, and allocates device memory.
//
//   escape WAY MIB SECONDS [DEVICE]
//                            With DEVICE it attaches first and then allocates on that device of the machine.
//                            WAY: plain (dlopen and dlsym, no bypass), dlmopen (a namespace of its
//                            own), dlvsym (libc's own dlsym, found by its version), deepbind (a library whose
//                            own scope goes first; ESCAPE_DEEPBOUND names it)
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "abi/cuda.h"

namespace {

struct Driver {
  decltype(&cuInit) init;
  decltype(&cuCtxCreate_v2) create;
  decltype(&cuMemAlloc_v2) allocate;
};

template <class Find>
bool bind(Driver& driver, Find find) {
  driver.init = reinterpret_cast<decltype(driver.init)>(find("cuInit"));
  driver.create = reinterpret_cast<decltype(driver.create)>(find("cuCtxCreate_v2"));
  driver.allocate = reinterpret_cast<decltype(driver.allocate)>(find("cuMemAlloc_v2"));
  return driver.init != nullptr && driver.create != nullptr && driver.allocate != nullptr;
}

bool find_driver(const char* way, Driver& driver) {
  if (strcmp(way, "deepbind") == 0) {
    void* bound = dlopen(getenv("ESCAPE_DEEPBOUND"), RTLD_NOW | RTLD_DEEPBIND);
    return bound != nullptr && bind(driver, [&](const char* name) {
             char its[64];
             snprintf(its, sizeof its, "deepbound_%s", name);
             return dlsym(bound, its);
           });
  }
  void* library = strcmp(way, "dlmopen") == 0 ? dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW)
                                              : dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return false;
  if (strcmp(way, "dlvsym") == 0) {
    void* libc = dlopen("libc.so.6", RTLD_NOW);
    const auto find = reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(libc, "dlsym", "GLIBC_2.2.5"));
    return find != nullptr && bind(driver, [&](const char* name) { return find(library, name); });
  }
  return bind(driver, [&](const char* name) { return dlsym(library, name); });
}

// Makes this process hold a context on the slice's own device.
bool attach() {
  Driver hooked{};
  CUcontext context = nullptr;
  return find_driver("plain", hooked) && hooked.init(0) == CUDA_SUCCESS &&
         hooked.create(&context, 0, 0) == CUDA_SUCCESS && unsetenv("CUDA_VISIBLE_DEVICES") == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  if (argc == 5 && !attach()) {
    fprintf(stderr, "escape: does not attach\n");
    return 3;
  }
  const CUdevice device = argc == 5 ? atoi(argv[4]) : 0;
  Driver driver{};
  if (!find_driver(argv[1], driver)) {
    fprintf(stderr, "escape: no way to the driver by %s: %s\n", argv[1], dlerror());
    return 3;
  }
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  CUresult result = driver.init(0);
  if (result == CUDA_SUCCESS) result = driver.create(&context, 0, device);
  if (result == CUDA_SUCCESS) result = driver.allocate(&memory, strtoull(argv[2], nullptr, 10) << 20);
  if (result != CUDA_SUCCESS) {
    fprintf(stderr, "escape: CUresult %d\n", static_cast<int>(result));
    return 1;
  }
  printf("holds %s MiB\n", argv[2]);
  fflush(stdout);
  sleep(static_cast<unsigned>(atoi(argv[3])));
  return 0;
}
