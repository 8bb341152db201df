// Finds the slice's device for an NVML handle, and the slice's own processes.
//
// NVML ignores CUDA_VISIBLE_DEVICES, so the guest library narrows its results. The devices are the granted
// ones, numbered from 0 in the agent's order, and any other handle gives NVML_ERROR_NOT_FOUND. Monitors make
// these calls a few times a second, so handles are looked up by UUID each time and nothing is cached.
#pragma once

#include "guest/linkage/hook.h"
#include "guest/process/uuid.h"
#include "guest/quota/charge.h"

namespace carve::guest {

// Returns the index in Control::devices of the device that `text` names, or `not_granted` if there is none.
unsigned granted_index(const Process& process, const char* text);

// Does the same for a handle.
unsigned granted_index(const Process& process, nvmlDevice_t device);

// Returns the pid of one of the slice's processes in its own pid namespace, for the pid that the driver
// reports. Returns 0 for a process outside the slice. The driver may report pids of the agent's namespace or
// of the caller's.
uint32_t own_pid(const Process& process, uint32_t drivers);

// Returns the pid in the agent's namespace, which the driver uses, for a pid of the slice's own namespace.
// Returns 0 for a process outside the slice.
uint32_t outer_pid(const Process& process, uint32_t own);

}  // namespace carve::guest
