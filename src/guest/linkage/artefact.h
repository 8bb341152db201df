// One source set, three artefacts: libcarve.so is preloaded and exports all hooks and dlsym; the shims are
// mounted over libcuda.so.1 and libnvidia-ml.so.1 and export the hooks of that library. What differs between
// them is said here, once per artefact.
#pragma once

#include <span>

#include "guest/linkage/hook.h"
#include "wire/shm/attach.h"

namespace carve::guest {

// Where the mount list puts the real driver underneath a shim.
inline constexpr const char* driver_beneath_shim[] = {"/usr/lib/carve/driver/libcuda.so.1",
                                                      "/usr/lib/carve/driver/libnvidia-ml.so.1"};

struct Artefact {
  shm::Guest guest;
  // The real libraries by Api: a soname that the program loads, or the path that a shim depends on.
  const char* library[2];
  // The API socket (the attach socket is this plus `.attach`), and whether the environment may name another
  // one and its absence means that nobody is home.
  const char* socket;
  bool optional;
  std::span<const Table* const> tables;
};
extern const Artefact artefact;

}  // namespace carve::guest
