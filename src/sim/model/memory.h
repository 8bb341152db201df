// The amounts of the device's memory that contexts and clients use. The driver gives memory to contexts in
// blocks of 2 MiB and keeps a static reserve for itself; a context costs an overhead before its first
// allocation. Processes share only these amounts. Each process keeps its own addresses (sim/libcuda/heap.h),
// because no process may see another one's pointers.
//
// The functions are pure, as in the engine; the caller holds the device's lock.
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
// Returns the bytes that a client holds outside its contexts, not including shared segments.
inline uint64_t held_bytes(const Device& d, uint32_t client, uint64_t generation) {
  return d.holdings[client].generation == generation ? d.holdings[client].bytes : 0;
}

// Opens a context for the client, given by its slot and the slot's generation. *index receives the context's
// index among the 64.
Refusal open_context(Device&, uint32_t client, uint64_t generation, uint64_t now, unsigned* index);
// Releases everything that the context holds and discards its work.
void close_context(Device&, unsigned index, uint64_t now);

// Takes whole blocks for a context. Decrements the counter of an injected out-of-memory fault.
Refusal take(Device&, unsigned context, uint64_t bytes);
void give(Device&, unsigned context, uint64_t bytes);

// Takes blocks without a context, for pools and memory of cuMemCreate.
Refusal take_for(Device&, uint32_t client, uint64_t generation, uint64_t bytes);
void give_for(Device&, uint32_t client, uint64_t generation, uint64_t bytes);
// Removes the holding of a client that is gone or no longer holds anything.
void drop_holding(Device&, uint32_t client);

// Managed memory. admit_managed() fails only if a fault is injected. settle_managed() moves as much to the
// device as there is room for, in whole blocks, and returns the number of bytes moved. take() evicts managed
// memory to the host when another allocation needs the room. limit_managed() lets the owner evict all but
// `most` bytes of it.
Refusal admit_managed(Device&, uint64_t bytes);
uint64_t settle_managed(Device&, unsigned context, uint64_t bytes);
void limit_managed(Device&, unsigned context, uint64_t most);

// Opens a segment, which other processes may join, for bytes that a client already holds. The caller then
// releases those bytes where they were counted before. Returns false if all entries are in use.
bool open_segment(Device&, uint32_t client, uint64_t generation, uint64_t bytes, unsigned* index);
// Record that a client joins or leaves a segment, which is counted for one of the recorded clients. If no
// entry is free, the client is not recorded.
void join_segment(Device&, unsigned index, uint32_t client, uint64_t generation);
void leave_segment(Device&, unsigned index, uint32_t client, uint64_t generation);
void close_segment(Device&, unsigned index);

// Raises an error that breaks every context of `client`, or every context of the device if `client` is
// max_clients. A broken context stays broken until it is destroyed. Event sets report the error.
void raise_xid(Device&, uint64_t xid, uint32_t sticky_result, uint32_t client, uint64_t now);

// Accounting; no effect while it is off. account() records what a client holds now, and is called by all
// functions above that take memory. end_account() closes the account of a client that has ended.
// clear_accounts() removes the accounts of ended processes.
void account(Device&, uint32_t client, uint64_t generation);
void end_account(Device&, uint32_t client, uint64_t now);
void clear_accounts(Device&);

// Makes all words consistent with those that were stored last, after a process died while it held the lock.
void repair(Device&);

}  // namespace carve::sim
