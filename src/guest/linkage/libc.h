// The few calls of libc whose newest version is younger than the oldest glibc we load on (2.28), bound to
// their first version; and the real dlsym, which in the preload is not the one that the name finds.
#pragma once

namespace carve::guest {

// dlopen of glibc 2.2.5; null where a glibc before 2.34 runs a program without libdl, which so has no driver.
void* open_library(const char* name, int flags);

// libc's own dlsym (or the next preload's), found once past our own. Null before the first call of
// find_dlsym; the jump in dlsym.S reads it.
using RealDlsym = void* (*)(void* handle, const char* name);
extern "C" __attribute__((visibility("hidden"))) RealDlsym carve_real_dlsym;
RealDlsym find_dlsym();

}  // namespace carve::guest
