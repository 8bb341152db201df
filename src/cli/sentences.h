// Texts that several verbs print, from the states of the API.
#pragma once

#include <string>

#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::cli {

// Returns "library", or "not enforced" with the reason and the slices that are the reason.
std::string sentence(const Enforcement& enforcement);

// Returns what limits the slice in fact, for a column ISOLATION: "memory+compute"; "memory only" if
// its share was requested and is not enforced; "exclusive" for whole devices.
std::string isolation_column(const api::Slice& slice);

// Returns "ok", or the state with its reason.
std::string sentence(const DeviceHealth& health);

}  // namespace carve::cli
