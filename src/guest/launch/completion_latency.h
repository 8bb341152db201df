// Measures how much later than the device the host notices a completion. A thread that launches and
// synchronises measures its busy time by the host's clock: from its launch to its return. After each kernel,
// the return is late by the time it takes to wake the thread. For kernels of 200 us, this was a tenth of the
// measured time.
//
// So at one in 16 synchronisations, the device's time is measured too, with one timing event before the first
// launch and one after the last. From then on, the difference between the two times is subtracted. Kernels do
// not get an event each, because an event costs 1 to 2.5 us. A program that never synchronises is not
// sampled.
#pragma once

#include "guest/process/process_page.h"

namespace carve::guest {

// Begins a sample before the first launch after the thread was idle. The launch goes to `stream`, is not part
// of another call, and is not captured. Samples are rare under an uncontended lease (shm::LeaseWord).
void begin_latency_sample(ThreadLaunchState& l, uint64_t stream, bool uncontended);
// Inserts the sample's second event. The thread has submitted everything and is about to wait.
void close_latency_sample(ThreadLaunchState& l);
// Evaluates the sample when all work is complete. `took` is its duration by the host's clock.
void finish_latency_sample(ThreadLaunchState& l, uint64_t took);
// Drops the events, which ended with their context.
void drop_latency_sample(ThreadLaunchState& l, uint64_t context);

// Returns the part of the busy time in which the device was already idle (ns).
inline uint64_t completion_latency(const ThreadLaunchState& l) { return l.sample.latency_ns; }

}  // namespace carve::guest
