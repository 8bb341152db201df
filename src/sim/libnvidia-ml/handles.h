// NVML's state for a process: the set, and the number of initialisations. Handles are pointers into one
// array, so the library recognises a stale or foreign handle by its address. All calls also work in a forked
// child, as with NVIDIA's library.
#pragma once

#include <cstring>

#include "abi/nvml.h"
#include "sim/model/device_engine.h"
#include "sim/model/memory.h"
#include "sim/set/set.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct nvmlDevice_st {
  unsigned index;
};

namespace carve::sim {

// Returns the set after nvmlInit.
Set& the_set();

// Returns NVML_ERROR_UNINITIALIZED before nvmlInit and after nvmlShutdown.
nvmlReturn_t entered();

// Returns the device of a handle. The faults "slow NVML" and "device lost" take effect here.
nvmlReturn_t find_device(nvmlDevice_t, Device**);
nvmlDevice_t handle_of(unsigned index);

// Copies a text into the caller's buffer. Fails with NVML_ERROR_INSUFFICIENT_SIZE if it does not fit.
nvmlReturn_t give_text(const char* text, char* out, unsigned length);

void format_uuid(const Facts&, char (&out)[48]);

// Returns one of the device's facts, as most calls do.
template <class Out, class Get>
nvmlReturn_t fact(nvmlDevice_t device, Out* out, Get get) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = static_cast<Out>(get(d->facts));
  return NVML_SUCCESS;
}

// Time (ns) that a call waits for a client that was stopped in the middle of a change.
inline constexpr uint64_t lock_timeout = 250'000'000;

// Returns one value of the device's state, brought up to date and read under the device's lock.
template <class Out, class Get>
nvmlReturn_t state(nvmlDevice_t device, Out* out, Get get) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  const Locked lock(*d, lock_timeout);
  if (!lock.held()) return NVML_ERROR_TIMEOUT;
  const uint64_t now = now_ns();
  sweep(the_set(), device->index, now);
  *out = static_cast<Out>(get(*d, now));
  return NVML_SUCCESS;
}

}  // namespace carve::sim
