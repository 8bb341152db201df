// Memory is counted, never stored twice: the amount in use is the sum over contexts, so a process that is
// killed between two stores cannot leave a total that disagrees with its parts.
#include "sim/model/memory.h"

#include <bit>

#include "sim/model/engine.h"

namespace carve::sim {

uint64_t used_bytes(const Device& d) {
  uint64_t used = d.facts.reserved_bytes;
  for (uint64_t left = d.engine.used; left; left &= left - 1)
    used += held_bytes(d.contexts[std::countr_zero(left)]);
  return used;
}

Refusal open_context(Device& d, uint32_t client, uint64_t generation, uint64_t now, unsigned* index) {
  if (d.faults.lost) return Refusal::lost;
  advance(d, now);
  if (~d.engine.used == 0) return Refusal::no_slot;
  if (free_bytes(d) < d.facts.context_bytes) return Refusal::no_memory;
  const auto i = static_cast<unsigned>(std::countr_one(d.engine.used));
  Context& c = d.contexts[i];
  c.client = client;
  c.client_generation = generation;
  c.serial = ++d.engine.serial;
  c.overhead_bytes = d.facts.context_bytes;
  c.block_bytes = 0;
  c.next_order = 0;
  c.active = 0;
  c.busy_ns = 0;
  c.kernels = 0;
  c.window = {.start_ns = d.engine.now_ns, .busy_at_start_ns = 0, .last_percent = 0, .reserved = 0};
  __atomic_store_n(&c.error, 0u, __ATOMIC_RELAXED);
  for (Channel& channel : c.channels) channel = Channel{};
  c.in_use = 1;
  d.engine.used |= 1ull << i;
  *index = i;
  return Refusal::none;
}

void close_context(Device& d, unsigned index, uint64_t now) {
  abandon(d, index, now);
  d.contexts[index].in_use = 0;
  d.engine.used &= ~(1ull << index);
}

Refusal take(Device& d, unsigned context, uint64_t bytes) {
  if (d.faults.lost) return Refusal::lost;
  if (d.faults.out_of_memory != 0) {
    if (d.faults.out_of_memory > 0) --d.faults.out_of_memory;
    return Refusal::no_memory;
  }
  if (d.faults.out_of_memory_above && bytes > d.faults.out_of_memory_above) return Refusal::no_memory;
  if (bytes > free_bytes(d)) return Refusal::no_memory;
  d.contexts[context].block_bytes += bytes;
  return Refusal::none;
}

void give(Device& d, unsigned context, uint64_t bytes) {
  uint64_t& held = d.contexts[context].block_bytes;
  held -= bytes < held ? bytes : held;
}

void raise_xid(Device& d, uint64_t xid, uint32_t sticky_result, uint32_t client, uint64_t now) {
  advance(d, now);
  d.faults.xids[d.faults.xid_serial % kXids] = {.serial = d.faults.xid_serial, .at_ns = now, .code = xid};
  ++d.faults.xid_serial;
  for (unsigned i = 0; i < kContexts; ++i) {
    Context& c = d.contexts[i];
    if (!c.in_use || (client != kClients && c.client != client)) continue;
    __atomic_store_n(&c.error, sticky_result, __ATOMIC_RELAXED);
    abandon(d, i, now);
  }
}

void repair(Device& d) {
  Engine& e = d.engine;
  e.used = e.active = 0;
  for (unsigned i = 0; i < kContexts; ++i) {
    Context& c = d.contexts[i];
    if (!c.in_use) continue;
    e.used |= 1ull << i;
    c.active = 0;
    for (unsigned k = 0; k < kChannels; ++k) {
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
  for (CopyEngine& copy : e.copy) {
    if (copy.context < 0) continue;
    const Context& c = d.contexts[copy.context];
    const bool runs = c.in_use && c.channels[copy.channel].head == Head::running;
    if (!runs) copy.context = copy.channel = -1;
  }
  // A copy that runs on no engine starts again.
  for (unsigned i = 0; i < kContexts; ++i)
    for (unsigned k = 0; d.contexts[i].in_use && k < kChannels; ++k) {
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
