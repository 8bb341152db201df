// What the device does as time goes by. advance(now) plays the schedule up to now, event by event: a kernel
// or a copy ends, a time slice ends, a context switch ends. Nothing happens between events, so it does not
// matter who calls it, how often or how late: the same submissions give the same finish times to the
// nanosecond.
//
// Compute: one context owns the engine at a time; contexts with something to run take turns of `slice_ns`,
// with `switch_ns` between them in which nothing runs. An owner without work yields at once. A kernel that
// runs at the end of the slice keeps its remaining work. Inside the owner, kernels of different channels run
// side by side: the most urgent first, then the oldest, each takes the multiprocessors it can fill, later
// ones what is left. A kernel with a part of its width proceeds at that part of its speed. The kernels of a
// green context's channels never take more than its partition together.
//
// Copies run beside kernels on three engines, one at a time each, in turns over channels.
//
// Everything here is pure: `now` is an argument, the caller holds the device's lock.
#pragma once

#include <cstdint>

#include "sim/model/layout.h"

namespace carve::sim {

// Plays the schedule up to `now`. Earlier times do nothing.
void advance(Device&, uint64_t now);

// The time of the next event, or kNever. No operation completes before it unless something is submitted.
uint64_t next_event(const Device&);

// A time before which operation `sequence` (as pushed) of a channel cannot complete: what a waiter may sleep.
uint64_t earliest_end(const Device&, unsigned context, unsigned channel, uint64_t sequence);

// True while the channel has room for one more operation.
bool has_room(const Device&, unsigned context, unsigned channel);

// Submits at time `now` (advances to it first) and returns the operation's number in the channel: it is
// complete when Channel::completed is greater. The caller has seen has_room. `op` brings kind, width,
// duration, priority, flags and dependencies; the rest is set here.
uint64_t push(Device&, unsigned context, unsigned channel, Op op, uint64_t now);

// The process has run the host function at the head of the channel.
void host_done(Device&, unsigned context, unsigned channel, uint64_t now);

// All operations that hang end now.
void release_hung(Device&, uint64_t now);

inline bool complete(const Device& d, unsigned context, unsigned channel, uint64_t sequence) {
  return __atomic_load_n(&d.contexts[context].channels[channel].completed, __ATOMIC_ACQUIRE) > sequence;
}
inline bool idle(const Device& d, unsigned context) { return d.contexts[context].active == 0; }

// Forgets everything the context had submitted; used when it is destroyed or its process died.
void abandon(Device&, unsigned context, uint64_t now);

// Decides anew what runs, from the counters alone; part of the repair after a writer died.
void restart(Device&);

// Percent of the last whole window in which the device's compute engine, its copy engines, or one context
// were busy.
unsigned compute_percent(Device&, uint64_t now);
unsigned copy_percent(Device&, uint64_t now);
unsigned context_percent(Device&, unsigned context, uint64_t now);

}  // namespace carve::sim
