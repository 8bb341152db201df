// Measures how much later than the device the host notices a completion. A thread that launches and
// synchronises measures its busy time by the host's clock: from its launch to its return. The return is late
// by the wake-up of a thread, after each kernel. For kernels of 200 us this was a tenth.
//
// So once in 16 synchronisations the device is measured too: one timing event precedes the first launch, one
// follows the last. The excess of the host's time is subtracted from then on. There is never an event per
// kernel, because each costs 1 to 2.5 us. A program that never synchronises needs none of this.
#pragma once

#include "guest/process/process_page.h"

namespace carve::guest {

// Begins a sample before the first launch after the thread was idle. The launch goes to `stream`, is a call
// of its own, and is not captured. Samples are rare under an uncontended lease (shm::LeaseWord).
void begin_latency_sample(ThreadLaunchState& l, uint64_t stream, bool uncontended);
// Ends the sample's work on the stream. The thread has submitted everything and is about to wait.
void close_latency_sample(ThreadLaunchState& l);
// Evaluates the sample when all work is complete. `took` is its duration by the host's clock.
void finish_latency_sample(ThreadLaunchState& l, uint64_t took);
// Forgets the events, which ended with their context.
void drop_latency_sample(ThreadLaunchState& l, uint64_t context);

// Returns the part of the busy time that was not the device's (ns).
inline uint64_t completion_latency(const ThreadLaunchState& l) { return l.sample.latency_ns; }

}  // namespace carve::guest
