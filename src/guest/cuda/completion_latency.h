// How much later than the device the host knows. A thread that launches and synchronises says itself when it
// had work on the device, by the host's clock: from its launch to its return. The return comes late, by the
// wake of a thread, and after each kernel again; of kernels of 200 us it was a tenth.
//
// So every now and then the device is asked too: a timing event before the first launch and one behind the
// last, once in 16 synchronisations, and what the host saw beyond that is taken off from then on. Never an
// event per kernel: each costs 1 to 2.5 us. A program that never synchronises needs none of this.
#pragma once

#include "guest/quota/process.h"

namespace carve::guest {

// The first launch after the thread was idle is about to go to `stream`, from a call of its own, not
// captured. Of a slice whose work nobody waits for (shm::LeaseWord) hardly ever.
void begin_latency_sample(ThreadLaunchState& l, uint64_t stream, bool uncontended);
// All that it submitted is on its way, and it is about to wait.
void close_latency_sample(ThreadLaunchState& l);
// Everything is done: it took `took` by the host's clock.
void finish_latency_sample(ThreadLaunchState& l, uint64_t took);
// Its events are gone with their context.
void drop_latency_sample(ThreadLaunchState& l, uint64_t context);

// From the first launch after it was idle to the return, what was not the device's.
inline uint64_t completion_latency(const ThreadLaunchState& l) { return l.sample.latency_ns; }

}  // namespace carve::guest
