// libc functions whose newest version is newer than the oldest supported glibc (2.28), bound to their first
// version, and the real dlsym, because in the preload that name is the hook.
#pragma once

namespace carve::guest {

// dlopen of glibc 2.2.5. Null if a glibc before 2.34 runs a program without libdl, which therefore has no
// driver.
void* open_library(const char* name, int flags);

// dlerror of glibc 2.2.5: the program must not find the error of a look-up that this library made.
void forget_library_error();

// libc's own dlsym (or the next preload's), looked up once after the hook. Null before the first call of
// find_dlsym; the jump in dlsym.S reads it.
using RealDlsym = void* (*)(void* handle, const char* name);
extern "C" __attribute__((visibility("hidden"))) RealDlsym carve_real_dlsym;
RealDlsym find_dlsym();

}  // namespace carve::guest
