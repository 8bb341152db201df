// No total is stored: the amount of memory in use is computed as the sum over contexts. So a process that is
// killed between two stores cannot leave a total that differs from the sum of its parts.
#include "sim/model/memory.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "sim/model/device_engine.h"

namespace carve::sim {

uint64_t used_bytes(const Device& d) {
  uint64_t used = d.facts.reserved_bytes, managed = 0;
  for (uint64_t left = d.engine.used; left; left &= left - 1) {
    const Context& c = d.contexts[std::countr_zero(left)];
    used += held_bytes(c);
    if (c.in_use) managed += c.managed_bytes;
  }
  if (const uint64_t step = d.facts.managed_step_bytes; step != 0) used += (step - managed % step) % step;
  for (unsigned word = 0; word < std::size(d.holding); ++word)
    for (uint64_t left = d.holding[word]; left; left &= left - 1)
      used += d.holdings[word * 64 + static_cast<unsigned>(std::countr_zero(left))].bytes;
  for (unsigned i = 0; i < d.segment_end; ++i)
    if (d.segments[i].serial) used += d.segments[i].bytes;
  return used;
}

namespace {

// Sends managed memory of any context back to the host if that makes room for `bytes`. Returns false if it
// would not.
bool make_room(Device& d, uint64_t bytes) {
  uint64_t free = free_bytes(d), evictable = 0;
  if (bytes <= free) return true;
  for (uint64_t left = d.engine.used; left; left &= left - 1)
    evictable += d.contexts[std::countr_zero(left)].managed_bytes;
  if (bytes > free + evictable) return false;
  for (uint64_t left = d.engine.used; left && free < bytes; left &= left - 1) {
    uint64_t& managed = d.contexts[std::countr_zero(left)].managed_bytes;
    const uint64_t goes =
        std::min(managed, (bytes - free + memory_block_bytes - 1) / memory_block_bytes * memory_block_bytes);
    managed -= goes;
    free += goes;
  }
  return true;
}

// Applies the injected faults.
Refusal admit(Device& d, uint64_t bytes) {
  if (d.faults.lost) return Refusal::lost;
  if (d.faults.out_of_memory != 0) {
    if (d.faults.out_of_memory > 0) --d.faults.out_of_memory;
    return Refusal::no_memory;
  }
  const bool above = d.faults.out_of_memory_above && bytes > d.faults.out_of_memory_above;
  return above ? Refusal::no_memory : Refusal::none;
}

// The check that every allocation must pass.
Refusal room_for(Device& d, uint64_t bytes) {
  if (const Refusal r = admit(d, bytes); r != Refusal::none) return r;
  return make_room(d, bytes) ? Refusal::none : Refusal::no_memory;
}

}  // namespace

Refusal open_context(Device& d, uint32_t client, uint64_t generation, uint64_t now, unsigned* index) {
  if (d.faults.lost) return Refusal::lost;
  advance(d, now);
  if (~d.engine.used == 0) return Refusal::no_slot;
  if (!make_room(d, d.facts.context_bytes)) return Refusal::no_memory;
  const auto i = static_cast<unsigned>(std::countr_one(d.engine.used));
  Context& c = d.contexts[i];
  c.client = client;
  c.client_generation = generation;
  c.serial = ++d.engine.serial;
  c.overhead_bytes = d.facts.context_bytes;
  c.block_bytes = 0;
  c.managed_bytes = 0;
  c.next_order = 0;
  c.active = 0;
  c.busy_ns = c.sampled_busy_ns = 0;
  c.kernels = 0;
  c.window = {.start_ns = d.engine.now_ns, .busy_at_start_ns = 0, .last_percent = 0, .reserved = 0};
  __atomic_store_n(&c.error, 0u, __ATOMIC_RELAXED);
  for (Channel& channel : c.channels) channel = Channel{};
  c.in_use = 1;
  d.engine.used |= 1ull << i;
  *index = i;
  account(d, client, generation);
  return Refusal::none;
}

void close_context(Device& d, unsigned index, uint64_t now) {
  abandon(d, index, now);
  Context& c = d.contexts[index];
  c.in_use = 0;
  d.engine.used &= ~(1ull << index);
  Accounted& account = d.accounting.clients[c.client];
  if (account.generation == c.client_generation) account.end_ns = now;
}

Refusal take(Device& d, unsigned context, uint64_t bytes) {
  if (const Refusal r = room_for(d, bytes); r != Refusal::none) return r;
  Context& c = d.contexts[context];
  c.block_bytes += bytes;
  account(d, c.client, c.client_generation);
  return Refusal::none;
}

void give(Device& d, unsigned context, uint64_t bytes) {
  uint64_t& held = d.contexts[context].block_bytes;
  held -= bytes < held ? bytes : held;
}

Refusal take_for(Device& d, uint32_t client, uint64_t generation, uint64_t bytes) {
  if (const Refusal r = room_for(d, bytes); r != Refusal::none) return r;
  Holding& h = d.holdings[client];
  if (h.generation != generation) h = {generation, 0};
  h.bytes += bytes;
  d.holding[client / 64] |= 1ull << client % 64;
  account(d, client, generation);
  return Refusal::none;
}

void give_for(Device& d, uint32_t client, uint64_t generation, uint64_t bytes) {
  Holding& h = d.holdings[client];
  if (h.generation != generation) return;
  h.bytes -= std::min(bytes, h.bytes);
  if (h.bytes == 0) drop_holding(d, client);
}

void drop_holding(Device& d, uint32_t client) {
  d.holdings[client].bytes = 0;
  d.holding[client / 64] &= ~(1ull << client % 64);
}

Refusal admit_managed(Device& d, uint64_t bytes) { return admit(d, bytes); }

uint64_t settle_managed(Device& d, unsigned context, uint64_t bytes) {
  const uint64_t comes = std::min(bytes, free_bytes(d) / memory_block_bytes * memory_block_bytes);
  Context& c = d.contexts[context];
  c.managed_bytes += comes;
  account(d, c.client, c.client_generation);
  return comes;
}

void limit_managed(Device& d, unsigned context, uint64_t most) {
  uint64_t& managed = d.contexts[context].managed_bytes;
  managed = std::min(managed, most);
}

bool open_segment(Device& d, uint32_t client, uint64_t generation, uint64_t bytes, unsigned* index) {
  unsigned i = 0;
  while (i < d.segment_end && d.segments[i].serial) ++i;
  if (i == max_segments) return false;
  Segment& s = d.segments[i];
  s = {.serial = 0, .bytes = bytes, .holders = {{client, 1, generation}}};
  if (i == d.segment_end) ++d.segment_end;
  s.serial = ++d.segment_serial;
  *index = i;
  return true;
}

void join_segment(Device& d, unsigned index, uint32_t client, uint64_t generation) {
  for (SegmentHolder& h : d.segments[index].holders) {
    if (h.in_use && (h.client != client || h.generation != generation)) continue;
    h = {client, 1, generation};
    return;
  }
}

void leave_segment(Device& d, unsigned index, uint32_t client, uint64_t generation) {
  Segment& s = d.segments[index];
  unsigned kept = 0;
  for (const SegmentHolder& h : s.holders)
    if (h.in_use && (h.client != client || h.generation != generation)) s.holders[kept++] = h;
  for (; kept < max_holders; ++kept) s.holders[kept].in_use = 0;
}

void close_segment(Device& d, unsigned index) { d.segments[index].serial = 0; }

void raise_xid(Device& d, uint64_t xid, uint32_t sticky_result, uint32_t client, uint64_t now) {
  advance(d, now);
  d.faults.xids[d.faults.xid_serial % max_xids] = {.serial = d.faults.xid_serial, .at_ns = now, .code = xid};
  ++d.faults.xid_serial;
  for (unsigned i = 0; i < max_contexts; ++i) {
    Context& c = d.contexts[i];
    if (!c.in_use || (client != max_clients && c.client != client)) continue;
    __atomic_store_n(&c.error, sticky_result, __ATOMIC_RELAXED);
    abandon(d, i, now);
  }
}

void account(Device& d, uint32_t client, uint64_t generation) {
  Accounting& all = d.accounting;
  if (!all.on) return;
  Accounted& entry = all.clients[client];
  uint64_t& word = all.running[client / 64];
  const uint64_t bit = 1ull << client % 64;
  if (word & bit && entry.generation != generation) end_account(d, client, d.engine.now_ns);
  if (!(word & bit)) {
    entry = {.client = client, .reserved = 0, .generation = generation, .start_ns = d.engine.now_ns};
    word |= bit;
  }
  uint64_t held = held_bytes(d, client, generation);
  for (uint64_t left = d.engine.used; left; left &= left - 1) {
    const Context& c = d.contexts[std::countr_zero(left)];
    if (c.client == client && c.client_generation == generation) held += held_bytes(c), entry.end_ns = 0;
  }
  entry.peak_bytes = std::max(entry.peak_bytes, held);
}

void end_account(Device& d, uint32_t client, uint64_t now) {
  Accounting& all = d.accounting;
  Accounted& entry = all.clients[client];
  if (entry.end_ns == 0) entry.end_ns = now;
  all.ended[all.ended_count % max_accounted] = entry;
  ++all.ended_count;
  all.running[client / 64] &= ~(1ull << client % 64);
}

void clear_accounts(Device& d) { d.accounting.ended_count = 0; }

void repair(Device& d) {
  Engine& e = d.engine;
  e.used = e.active = 0;
  for (unsigned i = 0; i < max_contexts; ++i) {
    Context& c = d.contexts[i];
    if (!c.in_use) continue;
    e.used |= 1ull << i;
    c.active = 0;
    for (unsigned k = 0; k < max_channels; ++k) {
      Channel& channel = c.channels[k];
      if (channel.completed > channel.submitted) channel.completed = channel.submitted;
      if (channel.completed == channel.submitted) {
        channel.granted = 0;
        channel.head = Head::none;
      } else {
        c.active |= 1ull << k;
      }
    }
    if (c.active) e.active |= 1ull << i;
  }
  for (uint32_t client = 0; client < max_clients; ++client)
    if (d.holdings[client].bytes) d.holding[client / 64] |= 1ull << client % 64;
  for (CopyEngine& copy : e.copy) {
    if (copy.context < 0) continue;
    const Context& c = d.contexts[copy.context];
    const bool runs = c.in_use && c.channels[copy.channel].head == Head::running;
    if (!runs) copy.context = copy.channel = -1;
  }
  // A copy that was not on an engine starts again.
  for (unsigned i = 0; i < max_contexts; ++i)
    for (unsigned k = 0; d.contexts[i].in_use && k < max_channels; ++k) {
      Channel& channel = d.contexts[i].channels[k];
      if (channel.head != Head::running || channel.granted != 0) continue;
      bool served = false;
      for (const CopyEngine& copy : e.copy)
        served |= copy.context == static_cast<int32_t>(i) && copy.channel == static_cast<int32_t>(k);
      if (!served) channel.head = Head::none;
    }
  if (e.accounted_ns > e.now_ns) e.accounted_ns = e.now_ns;
  restart(d);
}

}  // namespace carve::sim
