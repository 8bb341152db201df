// The device's behaviour over time. advance(now) plays the schedule up to now, event by event: a kernel or a
// copy ends, a time slice ends, a context switch ends. No state changes between events. So the caller, the
// frequency and the delay of the calls do not matter: the same submissions give the same finish times to the
// nanosecond.
//
// Compute: one context owns the engine at a time. Contexts with runnable work take turns of `slice_ns`, with
// `switch_ns` between them in which no kernel runs. An owner without work yields immediately. A kernel that
// runs at the end of the slice keeps its remaining work. Inside the owner, kernels of different channels run
// in parallel. The most urgent kernel is served first, then the oldest; each takes the multiprocessors that
// it can fill, and later ones take the rest. A kernel with a part of its width proceeds at that part of its
// speed. The kernels of a green context's channels together never take more than its partition.
//
// Copies run in parallel with kernels on three engines. Each engine runs one copy at a time, in turns over
// channels.
//
// Everything here is pure: `now` is an argument, the caller holds the device's lock.
#pragma once

#include <cstdint>

#include "sim/model/device_file.h"

namespace carve::sim {

// Plays the schedule up to `now`. Does nothing if `now` is earlier than the engine's time.
void advance(Device&, uint64_t now);

// Returns the time of the next event, or never_time. No operation completes before that time unless a process
// submits another one.
uint64_t next_event(const Device&);

// Returns a time before which operation `sequence` (as pushed) of a channel cannot complete; a waiter may
// sleep until then.
uint64_t earliest_end(const Device&, unsigned context, unsigned channel, uint64_t sequence);

// Returns true while the channel has room for one more operation.
bool has_room(const Device&, unsigned context, unsigned channel);

// Submits at time `now` (advances to it first) and returns the operation's number in the channel. The
// operation is complete when Channel::completed is greater than that number. The caller has checked
// has_room(). `op` brings kind, width, duration, priority, flags and dependencies; push() sets the other
// fields.
uint64_t push(Device&, unsigned context, unsigned channel, Op op, uint64_t now);

// Completes the host function at the head of the channel, after the process has run it.
void host_done(Device&, unsigned context, unsigned channel, uint64_t now);

// Ends all hanging operations now.
void release_hung(Device&, uint64_t now);

inline bool complete(const Device& d, unsigned context, unsigned channel, uint64_t sequence) {
  return __atomic_load_n(&d.contexts[context].channels[channel].completed, __ATOMIC_ACQUIRE) > sequence;
}
inline bool idle(const Device& d, unsigned context) { return d.contexts[context].active == 0; }

// Discards everything that the context submitted; used when it is destroyed or its process died.
void abandon(Device&, unsigned context, uint64_t now);

// Decides again what runs, using only the counters; part of the repair after a writer died.
void restart(Device&);

// Return the percentage of the last whole window in which the device's compute engine, its copy engines or
// one context were busy.
unsigned compute_percent(Device&, uint64_t now);
unsigned copy_percent(Device&, uint64_t now);
unsigned context_percent(Device&, unsigned context, uint64_t now);

}  // namespace carve::sim
