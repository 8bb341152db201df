// Memory that travels between processes is charged once, where it was allocated. A slice must not use another
// slice's memory uncounted. So the exports of its processes are recorded in pages that they share
// (wire/shm/exports.h). An import of any other object is refused with the error that the call documents.
//
// An object is identified by what names it: the 64 bytes of an IPC handle, the device and inode of a file
// descriptor. If a driver gives all its descriptors one inode (a device node), they cannot be distinguished:
// such an import is allowed.
#pragma once

#include "guest/linkage/hook.h"

namespace carve::guest {

// Returns `result`. If it is a success, records `handle` as an exported object.
CUresult exported(CUresult result, const void* handle, CUmemAllocationHandleType type);

// Returns whether an import of the object must be refused.
bool is_foreign(const void* handle, CUmemAllocationHandleType type);

// Returns the identity of a file descriptor; 0: unknown.
uint64_t identity_of_descriptor(int fd);

}  // namespace carve::guest
