// Memory that is passed between processes is charged once, to the slice in which it was allocated, until no
// process holds it (quota/shared_block.h). A slice must not use another slice's memory without being charged
// for it. So the exports of a slice's processes are recorded in pages that these processes share
// (wire/shm/exports.h), and an import of any other object is refused with the error that the call documents.
//
// A descriptor is identified by the name that its exporter gave it, or otherwise by its device and inode; an
// IPC handle is identified by its 64 bytes. If a driver gives all its descriptors one inode (a device node),
// those that an unmanaged process exported cannot be distinguished, so such imports are allowed.
#pragma once

#include "guest/linkage/hook.h"
#include "guest/quota/shared_block.h"

namespace carve::guest {

// Returns `result`. If `result` is CUDA_SUCCESS, also records `handle` as an exported object.
CUresult exported(CUresult result, const void* handle, CUmemAllocationHandleType type);

// The imported object. The caller has a use of its block and must leave the block if the import fails.
struct Imported {
  bool is_foreign;  // The import must be refused.
  unsigned block;   // no_block if the object is not charged to this slice.
};
Imported imported(Process& p, const void* handle, CUmemAllocationHandleType type);

// Returns the identity of a file descriptor, or 0 if it is unknown.
uint64_t identity_of_descriptor(int fd);

}  // namespace carve::guest
