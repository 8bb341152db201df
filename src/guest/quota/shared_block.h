// Charges of memory that other processes may also hold (wire/shm/shared_blocks.h). The bytes are then in the
// lane of a shared block of the slice. A record's charge names the block: `device` is in_shared_block and
// `bytes` the block's index. give_back() of such a charge ends one use of the block. After the last use in
// this process, its bit in the block is cleared.
//
// An exported descriptor gets the block's name as a lock. Importers use it to find the block, and every
// process can use it to check, in 15 us, whether any process still has a copy of the descriptor.
//
// Lock order: Process::sharing is taken before LaneState::lock and before the lock of a shard.
#pragma once

#include "guest/quota/charge.h"
#include "wire/shm/shared_blocks.h"

namespace carve::guest {

using shm::no_block;
using shm::SharedBlockKind;

// Moves a charge of this process to a new shared block of that name, of which the caller has one use. Returns
// no_block and changes nothing if the slice has no free block or the budget changes without pause. `within`
// is the name of a block that keeps this one.
unsigned share(Process& p, const Charge& charge, SharedBlockKind kind, uint64_t name, uint64_t within = 0);

// Adds a use of the block of that name. Returns no_block if the slice has no such block.
unsigned join(Process& p, uint64_t name);

// Moves another charge of this process to the block of a pool that this process exported.
bool add_to_block(Process& p, const Charge& charge, unsigned block);
uint64_t bytes_of_block(Process& p, unsigned block);
// Records how many bytes this process's pool still has. The block is lowered to that number once no other
// process holds it, either by this call or when a process or the agent next settles the blocks.
void keep_in_block(Process& p, unsigned block, Bytes bytes);
// Returns whether anything other than this process's pool holds its block.
bool is_pool_held_beside(Process& p, unsigned block);
// Counts an import of this process's own pool, which also holds the block. Has no effect for a pool of
// another process.
void begin_own_import(Process& p, unsigned block);
void end_own_import(Process& p, unsigned block);
// Keeps a block that importers cannot find until the slice ends.
void keep_until_slice_ends(Process& p, unsigned block);

// Ends a use. After the last one, releases the block if no other process and no descriptor holds it.
void leave(Process& p, unsigned block);

constexpr Charge charge_of_block(unsigned block) { return {block, in_shared_block, 0}; }
inline shm::SharedBlock& block_of(Process& p, const Charge& charge) {
  return p.report->charges.block[charge.bytes % shm::max_shared_blocks];
}

// Returns the index of the device that the bytes are charged to.
inline unsigned device_of(Process& p, const Charge& charge) {
  return charge.device == in_shared_block ? block_of(p, charge).device.load(std::memory_order_relaxed)
                                          : charge.device;
}

// Releases the blocks on one device that no process and no descriptor holds any more. Returns whether there
// were any. If there are no shared blocks, this takes one load.
bool settle_all_shared(Process& p, unsigned device);
inline bool settle_shared(Process& p, unsigned device) {
  return p.report->charges.block_end.load(std::memory_order_relaxed) != 0 && settle_all_shared(p, device);
}

// Returns a random name for share(), in the form of a descriptor's.
uint64_t new_name();
// Gives the name to a descriptor and all its copies. Returns false if the kernel refuses.
bool name_descriptor(int fd, uint64_t name);
// Returns the name of a descriptor, or 0 if it has none.
uint64_t name_of_descriptor(int fd);

}  // namespace carve::guest
