// The preload's dlsym. It handles only exact names of the hook tables, never prefixes, so a program without
// CUDA is not affected. It calls the real dlsym and exchanges the result by address. A foreign library's
// function of the same name is returned unchanged.
#include <dlfcn.h>

#include "guest/linkage/artefact.h"
#include "guest/linkage/libc.h"

namespace carve::guest {
namespace {

struct Answer {
  void* entry;
  uint64_t given;  // 0 means to jump into the real dlsym with the caller's return address.
};

// Returns whether a driver is loaded and has that entry point. This library exports all names with hooks, but
// a program must find only those of its driver, because it uses them to decide what the driver can do.
bool driver_has(Api api, RealDlsym real, const char* name) {
  void* const library = open_library(artefact.library[static_cast<unsigned>(api)], RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr && real(library, name) != nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) Answer carve_answer_dlsym(void* handle, const char* name) {
  const auto real = find_dlsym();
  if (real == nullptr) return {nullptr, 1};
  // Names of the driver begin with these letters; all other lookups skip the search.
  if (name == nullptr || (name[0] != 'c' && name[0] != 'n')) return {nullptr, 0};
  const Hook* row = find_hook(name);
  if (row == nullptr) return {nullptr, 0};
  const Api api = std::string_view(name).starts_with("nvml") ? Api::nvml : Api::cuda;
  // RTLD_NEXT and RTLD_DEFAULT search on behalf of the caller and find the exported hook, which is the right
  // result if the driver has that entry point. If it does not, the search continues after this library and
  // sets dlerror as the caller expects.
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
    if (driver_has(api, real, name)) return {nullptr, 0};
    return {real(RTLD_NEXT, name), 1};
  }
  void* theirs = real(handle, name);
  if (theirs == nullptr) return {nullptr, 1};
  // A handle of the program itself finds the exported hook too.
  if (theirs == row->ours()) return {driver_has(api, real, name) ? theirs : real(RTLD_NEXT, name), 1};
  // Binding looks up the whole table, which takes 20 us, and some programs look a name up before each call.
  if (void* const ours = exchanged(theirs); ours != theirs) return {ours, 1};
  // If no hook can be found for the driver's address, the program gets no address, because it would bypass
  // the hook.
  if (!bind(api)) return {nullptr, 1};
  return {exchanged(theirs), 1};
}

}  // namespace carve::guest
