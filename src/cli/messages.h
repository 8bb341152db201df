// Texts about states of the API that several verbs print.
#pragma once

#include <string>

#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::cli {

// Returns the level, such as "library", or "not enforced" with the reason and the slices that cause it.
std::string message(const Enforcement& enforcement);

// Returns what enforces memory limits: "kernel", or "library; no kernel guard: the agent does not run as root".
std::string enforcement_text(const Enforcement& memory);

// Returns the limits in force for the slice, for the ISOLATION column: "memory+compute"; "memory only" if its
// share was requested and is not enforced; "exclusive" for whole devices.
std::string isolation_column(const api::Slice& slice);

// Returns whether the slice has the same quota and share on each device.
bool has_equal_parts(const api::Slice& slice);
// Returns the quota of a device, or the differing quotas of the devices in order: "8 GiB,4 GiB".
std::string quotas_text(const api::Slice& slice);
// Returns the same for shares: "30%,10%"; "-" if there are none.
std::string shares_text(const api::Slice& slice);

// Returns why the slice may only be changed through its service or job; empty if it belongs to none.
std::string workload_problem(const api::Slice& slice);

// Returns "ok", or the state with its reason.
std::string message(const DeviceHealth& health);

}  // namespace carve::cli
