// A library that looks up names on its own behalf.
#include <dlfcn.h>

#pragma GCC visibility push(default)
extern "C" int carve_probe() { return 2; }
extern "C" int only_in_probe() { return 3; }
// Not tail calls, because dlsym must find a return address in this library.
extern "C" void* next_of(const char* name) {
  void* volatile found = dlsym(RTLD_NEXT, name);
  return found;
}
extern "C" void* default_of(const char* name) {
  void* volatile found = dlsym(RTLD_DEFAULT, name);
  return found;
}
#pragma GCC visibility pop
