// Who owns how much of the device's memory. The driver gives memory to contexts in blocks of 2 MiB and keeps
// a static reserve for itself; a context costs an overhead before its first allocation. Only amounts are
// shared between processes: addresses are each process's own affair (sim/libcuda/heap.h), since no two of
// them may see each other's pointers anyway.
//
// Pure, like the engine; the caller holds the device's lock.
#pragma once

#include <cstdint>

#include "sim/model/layout.h"

namespace carve::sim {

enum class Refusal { none, no_slot, no_memory, lost };

// Bytes of the device that are taken: the driver's reserve, all contexts and their blocks.
uint64_t used_bytes(const Device&);
inline uint64_t free_bytes(const Device& d) {
  const uint64_t used = used_bytes(d);
  return used < d.facts.native_bytes ? d.facts.native_bytes - used : 0;
}
// What cuDeviceTotalMem answers.
inline uint64_t total_bytes(const Device& d) { return d.facts.native_bytes - d.facts.reserved_bytes; }
inline uint64_t held_bytes(const Context& c) {
  return c.in_use ? c.overhead_bytes + c.block_bytes + c.managed_bytes : 0;
}
// What a client holds outside of its contexts, without what it shares.
inline uint64_t held_bytes(const Device& d, uint32_t client, uint64_t generation) {
  return d.holdings[client].generation == generation ? d.holdings[client].bytes : 0;
}

// A new context of the client (its slot and that slot's generation); *index says which of the 64.
Refusal open_context(Device&, uint32_t client, uint64_t generation, uint64_t now, unsigned* index);
// Gives back everything the context holds and forgets its work.
void close_context(Device&, unsigned index, uint64_t now);

// Whole blocks for a context. Counts an out-of-memory fault down.
Refusal take(Device&, unsigned context, uint64_t bytes);
void give(Device&, unsigned context, uint64_t bytes);

// The same for a client that needs no context: pools and memory of cuMemCreate.
Refusal take_for(Device&, uint32_t client, uint64_t generation, uint64_t bytes);
void give_for(Device&, uint32_t client, uint64_t generation, uint64_t bytes);
// The client is gone, or holds nothing any more.
void drop_holding(Device&, uint32_t client);

// Managed memory: an allocation is refused by faults alone. It comes to the device as far as there is room:
// returns how many of the bytes did, whole blocks. `take` sends it back to the host when somebody needs the
// room, and its owner does: at most so much of it stays.
Refusal admit_managed(Device&, uint64_t bytes);
uint64_t settle_managed(Device&, unsigned context, uint64_t bytes);
void limit_managed(Device&, unsigned context, uint64_t most);

// Bytes that a client holds already become a segment that others may join; the caller then gives them back
// from where they were counted. False when all entries are taken.
bool open_segment(Device&, uint32_t client, uint64_t generation, uint64_t bytes, unsigned* index);
// Joining and leaving say for whom it is counted; a client that finds no room is not remembered.
void join_segment(Device&, unsigned index, uint32_t client, uint64_t generation);
void leave_segment(Device&, unsigned index, uint32_t client, uint64_t generation);
void close_segment(Device&, unsigned index);

// An error that breaks every context of the device (of one client, if it is not kClients) until it is
// destroyed, and that event sets report.
void raise_xid(Device&, uint64_t xid, uint32_t sticky_result, uint32_t client, uint64_t now);

// After a holder of the lock died inside of a change: makes every word agree with those that were stored
// last.
void repair(Device&);

}  // namespace carve::sim
