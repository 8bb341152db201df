// Which slice an NVML handle means, and which processes are the slice's own.
//
// NVML knows no CUDA_VISIBLE_DEVICES, so here the library narrows: the devices are the granted ones, counted
// from 0 in the agent's order, and any other handle is NVML_ERROR_NOT_FOUND. These calls are made a few times
// a second by monitors, so handles are looked up by UUID each time and nothing is cached.
#pragma once

#include "guest/linkage/hook.h"
#include "guest/quota/charge.h"
#include "guest/quota/uuid.h"

namespace carve::guest {

// The index in Control::devices of the device that `text` names; `not_granted` where there is none.
unsigned granted_index(const Process& process, const char* text);

// The same of a handle.
unsigned granted_index(const Process& process, nvmlDevice_t device);

// The pid of one of the slice's processes in its own pid namespace, given the pid that the driver reports; 0
// for a stranger's. The driver may count in the agent's namespace or in the caller's.
uint32_t own_pid(const Process& process, uint32_t drivers);

// The other way: the pid to ask the driver about, as the agent's namespace has it; 0 for a stranger's.
uint32_t outer_pid(const Process& process, uint32_t own);

}  // namespace carve::guest
