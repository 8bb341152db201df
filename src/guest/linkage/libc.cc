#include "guest/linkage/libc.h"

#include <dlfcn.h>

// glibc 2.34 gave these a second version when it moved them out of libdl. They are weak, and libdl is not
// among the needed libraries, because an image of a program and its libraries may lack it. If libdl is
// missing on an older glibc, there is no CUDA either.
__asm__(".symver carve_dlopen_2_2_5, dlopen@GLIBC_2.2.5");
__asm__(".symver carve_dlvsym_2_2_5, dlvsym@GLIBC_2.2.5");
__asm__(".symver carve_dlerror_2_2_5, dlerror@GLIBC_2.2.5");
extern "C" __attribute__((weak)) void* carve_dlopen_2_2_5(const char* name, int flags);
extern "C" __attribute__((weak)) void* carve_dlvsym_2_2_5(void* handle, const char* name,
                                                          const char* version);
extern "C" __attribute__((weak)) char* carve_dlerror_2_2_5();

namespace carve::guest {

RealDlsym carve_real_dlsym = nullptr;

void* open_library(const char* name, int flags) {
  return carve_dlopen_2_2_5 != nullptr ? carve_dlopen_2_2_5(name, flags) : nullptr;
}

void forget_library_error() {
  if (carve_dlerror_2_2_5 != nullptr) carve_dlerror_2_2_5();
}

RealDlsym find_dlsym() {
  auto found = __atomic_load_n(&carve_real_dlsym, __ATOMIC_RELAXED);
  if (found == nullptr && carve_dlvsym_2_2_5 != nullptr) {
    found = reinterpret_cast<RealDlsym>(carve_dlvsym_2_2_5(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
    __atomic_store_n(&carve_real_dlsym, found, __ATOMIC_RELAXED);
  }
  return found;
}

}  // namespace carve::guest
