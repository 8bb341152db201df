// Memory that is passed between processes is charged once, to the slice in which it was allocated, until no
// process holds it (quota/shared_block.h). A slice must not use another slice's memory uncounted. So the
// exports of its processes are recorded in pages that they share (wire/shm/exports.h). An import of any other
// object is refused with the error that the call documents.
//
// An object is identified by its name: the name that its exporter gave to a descriptor, else the descriptor's
// device and inode; the 64 bytes of an IPC handle. If a driver gives all its descriptors one inode (a device
// node), those that an unmanaged process exported cannot be distinguished, so such imports are allowed.
#pragma once

#include "guest/linkage/hook.h"
#include "guest/quota/shared_block.h"

namespace carve::guest {

// Returns `result`. If it is a success, records `handle` as an exported object.
CUresult exported(CUresult result, const void* handle, CUmemAllocationHandleType type);

// The object of an import. The caller has a use of the block and must leave it if the import fails.
struct Imported {
  bool is_foreign;  // The import must be refused.
  unsigned block;   // Or no_block if it is not charged to this slice.
};
Imported imported(Process& p, const void* handle, CUmemAllocationHandleType type);

// Returns the identity of a file descriptor; 0 if unknown.
uint64_t identity_of_descriptor(int fd);

}  // namespace carve::guest
