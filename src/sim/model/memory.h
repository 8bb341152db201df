// The amounts of the device's memory and their owners. The driver gives memory to contexts in blocks of 2 MiB
// and keeps a static reserve for itself; a context costs an overhead before its first allocation. Processes
// share only the amounts. Each process keeps its own addresses (sim/libcuda/heap.h), since no process may see
// another one's pointers.
//
// Pure, like the engine; the caller holds the device's lock.
#pragma once

#include <cstdint>

#include "sim/model/device_file.h"

namespace carve::sim {

enum class Refusal { none, no_slot, no_memory, lost };

// Returns the bytes of the device that are in use: the driver's reserve, all contexts and their blocks.
uint64_t used_bytes(const Device&);
inline uint64_t free_bytes(const Device& d) {
  const uint64_t used = used_bytes(d);
  return used < d.facts.native_bytes ? d.facts.native_bytes - used : 0;
}
// Returns the result of cuDeviceTotalMem.
inline uint64_t total_bytes(const Device& d) { return d.facts.native_bytes - d.facts.reserved_bytes; }
inline uint64_t held_bytes(const Context& c) {
  return c.in_use ? c.overhead_bytes + c.block_bytes + c.managed_bytes : 0;
}
// Returns what a client holds outside its contexts, without its shared segments.
inline uint64_t held_bytes(const Device& d, uint32_t client, uint64_t generation) {
  return d.holdings[client].generation == generation ? d.holdings[client].bytes : 0;
}

// Opens a context for the client (its slot and that slot's generation). *index is its index among the 64.
Refusal open_context(Device&, uint32_t client, uint64_t generation, uint64_t now, unsigned* index);
// Releases everything that the context holds and discards its work.
void close_context(Device&, unsigned index, uint64_t now);

// Takes whole blocks for a context. Counts an out-of-memory fault down.
Refusal take(Device&, unsigned context, uint64_t bytes);
void give(Device&, unsigned context, uint64_t bytes);

// The same for memory without a context: pools and memory of cuMemCreate.
Refusal take_for(Device&, uint32_t client, uint64_t generation, uint64_t bytes);
void give_for(Device&, uint32_t client, uint64_t generation, uint64_t bytes);
// Removes the holding of a client that is gone or no longer holds anything.
void drop_holding(Device&, uint32_t client);

// Managed memory. Only faults refuse an allocation. The memory moves to the device as far as there is room:
// returns how many of the bytes did, in whole blocks. `take` sends managed memory back to the host when
// another allocation needs the room. The owner sends it back too: at most this much of it stays.
Refusal admit_managed(Device&, uint64_t bytes);
uint64_t settle_managed(Device&, unsigned context, uint64_t bytes);
void limit_managed(Device&, unsigned context, uint64_t most);

// Opens a segment, which other processes may join, from bytes that a client already holds; the caller then
// releases those bytes where they were counted. Returns false if all entries are taken.
bool open_segment(Device&, uint32_t client, uint64_t generation, uint64_t bytes, unsigned* index);
// Joining and leaving record the clients for which the segment is counted. A client that finds no free entry
// is not recorded.
void join_segment(Device&, unsigned index, uint32_t client, uint64_t generation);
void leave_segment(Device&, unsigned index, uint32_t client, uint64_t generation);
void close_segment(Device&, unsigned index);

// Raises an error that breaks every context of the device until it is destroyed (if `client` is not
// max_clients, only those of `client`). Event sets report the error.
void raise_xid(Device&, uint64_t xid, uint32_t sticky_result, uint32_t client, uint64_t now);

// Accounting, if it is on. account() records what a client holds now; everything above that takes memory
// calls it. end_account() closes the account of a client that is gone; clear_accounts() removes those of
// ended processes.
void account(Device&, uint32_t client, uint64_t generation);
void end_account(Device&, uint32_t client, uint64_t now);
void clear_accounts(Device&);

// Makes every word agree with the words that were stored last, after a holder of the lock died inside a
// change.
void repair(Device&);

}  // namespace carve::sim
