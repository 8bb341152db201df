// The device's behaviour over time. advance(now) plays the schedule up to now, event by event: a kernel or a
// copy ends, a time slice ends, a context switch ends. No state changes between events. So it does not matter
// who calls advance(), how often or how late: the same submissions give the same finish times to the
// nanosecond.
//
// Compute: one context owns the engine at a time. Contexts with runnable work take turns of `slice_ns`, with
// `switch_ns` between them in which no kernel runs. An owner without work yields immediately. A kernel that
// runs at the end of the slice keeps its remaining work. Inside the owner, kernels of different channels run
// in parallel. The most urgent kernel is served first, then the oldest; each takes as many multiprocessors as
// it can fill, and later ones share the rest. A kernel that gets a fraction of its width runs at that
// fraction of its speed. The kernels of a green context's channels together never use more than its
// partition.
//
// Copies run in parallel with kernels on three engines. Each engine runs one copy at a time, in turns over
// channels.
//
// All functions are pure: `now` is an argument, and the caller holds the device's lock.
#pragma once

#include <cstdint>

#include "sim/model/device_file.h"

namespace carve::sim {

// Plays the schedule up to `now`. Does nothing if `now` is earlier than the engine's time.
void advance(Device&, uint64_t now);

// Returns the time of the next event, or never_time. No operation completes before that time unless a process
// submits another one.
uint64_t next_event(const Device&);

// Returns a time before which operation `sequence` (as returned by push()) of a channel cannot complete. A
// waiter may sleep until then.
uint64_t earliest_end(const Device&, unsigned context, unsigned channel, uint64_t sequence);

// Returns true while the channel has room for one more operation.
bool has_room(const Device&, unsigned context, unsigned channel);

// Submits at time `now` (advances to it first) and returns the operation's number in the channel. The
// operation is complete when Channel::completed is greater than that number. The caller must have checked
// has_room(). The caller sets kind, width, duration, priority, flags and dependencies of `op`, and push()
// sets the other fields.
uint64_t push(Device&, unsigned context, unsigned channel, Op op, uint64_t now);

// Completes the host function at the head of the channel, after the process has run it.
void host_done(Device&, unsigned context, unsigned channel, uint64_t now);

// Ends all hanging operations now.
void release_hung(Device&, uint64_t now);

inline bool complete(const Device& d, unsigned context, unsigned channel, uint64_t sequence) {
  return __atomic_load_n(&d.contexts[context].channels[channel].completed, __ATOMIC_ACQUIRE) > sequence;
}
inline bool idle(const Device& d, unsigned context) { return d.contexts[context].active == 0; }

// Discards everything that the context submitted. Used when the context is destroyed or its process has died.
void abandon(Device&, unsigned context, uint64_t now);

// Decides again what runs, using only the counters. This is part of the repair after a writer died.
void restart(Device&);

// Return the percentage of the last complete window in which the device's compute engine, its copy engines or
// one context were busy.
unsigned compute_percent(Device&, uint64_t now);
unsigned copy_percent(Device&, uint64_t now);
unsigned context_percent(Device&, unsigned context, uint64_t now);

}  // namespace carve::sim
