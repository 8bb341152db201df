// One set of sources makes three artefacts. libcarve.so is preloaded and exports all hooks and dlsym. The
// shims are mounted over libcuda.so.1 and libnvidia-ml.so.1 and export the hooks of that library. This file
// declares the differences between them, once per artefact.
#pragma once

#include <span>

#include "guest/linkage/hook.h"
#include "wire/shm/attach.h"

namespace carve::guest {

// The path of the real driver beneath a shim, from the mount list.
inline constexpr const char* driver_beneath_shim[] = {"/usr/lib/carve/driver/libcuda.so.1",
                                                      "/usr/lib/carve/driver/libnvidia-ml.so.1"};

struct Artefact {
  shm::Guest guest;
  // The real libraries by Api: the soname that the program loads, or the path of the library that a shim
  // depends on.
  const char* library[2];
  // The path of the API socket; the attach socket's has `.attach` added. If `optional`, the environment may
  // name another socket, and an absent socket means that there is no agent.
  const char* socket;
  bool optional;
  std::span<const Table* const> tables;
};
extern const Artefact artefact;

}  // namespace carve::guest
