// The preload's dlsym. It answers only for exact names of the hook tables, never by prefix, so a program
// without CUDA is not affected. It calls the real dlsym and exchanges the result by identity. A foreign
// library's function of the same name is returned unchanged.
#include <dlfcn.h>

#include "guest/linkage/artefact.h"
#include "guest/linkage/libc.h"

namespace carve::guest {
namespace {

struct Answer {
  void* entry;
  uint64_t given;  // 0: jump into the real dlsym with the caller's own return address.
};

bool loaded(Api api) {
  return open_library(artefact.library[static_cast<unsigned>(api)], RTLD_LAZY | RTLD_NOLOAD) != nullptr;
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
  // RTLD_NEXT and RTLD_DEFAULT search on behalf of the caller and find the exported hook, which is right. If
  // no driver is loaded, the name must not exist, although this library exports it.
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
    if (loaded(api)) return {nullptr, 0};
    return {real(RTLD_NEXT, name), 1};  // Continues behind this library; sets dlerror as the caller expects.
  }
  void* theirs = real(handle, name);
  if (theirs == nullptr || theirs == row->ours()) return {theirs, 1};
  // Binding looks up the whole table, 20 us; some programs look a name up before each call.
  if (void* const ours = exchanged(theirs); ours != theirs) return {ours, 1};
  // If the hook cannot be found by the driver's address, the program gets no address: none bypasses the hook.
  if (!bind(api)) return {nullptr, 1};
  return {exchanged(theirs), 1};
}

}  // namespace carve::guest
