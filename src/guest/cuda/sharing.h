// Memory that travels between processes is charged once, where it was allocated. So that a slice does not
// use another slice's memory uncounted, what its processes export is written down in pages that they share
// (wire/shm/exports.h), and an import of anything else is refused with the error that the call documents.
//
// An object is known by what names it: the 64 bytes of an IPC handle, the device and inode of a file
// descriptor. Where a driver gives all its descriptors one inode (a device node) they cannot be told apart:
// such an import is allowed.
#pragma once

#include "guest/linkage/hook.h"

namespace carve::guest {

// Passes `result` on; where it is a success, `handle` names an exported object from now on.
CUresult exported(CUresult result, const void* handle, CUmemAllocationHandleType type);

// Whether an import of it is to be refused.
bool is_foreign(const void* handle, CUmemAllocationHandleType type);

// The identity of a file descriptor; 0: it cannot be told.
uint64_t identity_of_descriptor(int fd);

}  // namespace carve::guest
