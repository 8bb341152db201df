// The few calls of libc whose newest version is newer than the oldest supported glibc (2.28), bound to their
// first version. Also the real dlsym: in the preload the name finds the hook instead.
#pragma once

namespace carve::guest {

// dlopen of glibc 2.2.5. Null if a glibc before 2.34 runs a program without libdl, which thus has no driver.
void* open_library(const char* name, int flags);

// libc's own dlsym (or the next preload's), looked up once behind the hook. Null before the first call of
// find_dlsym; the jump in dlsym.S reads it.
using RealDlsym = void* (*)(void* handle, const char* name);
extern "C" __attribute__((visibility("hidden"))) RealDlsym carve_real_dlsym;
RealDlsym find_dlsym();

}  // namespace carve::guest
