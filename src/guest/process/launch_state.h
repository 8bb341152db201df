// A launching thread's record of its own work, and the process's record of its streams: the private half of
// wire/shm/work.h. It is part of the Process page, so a forked child finds it empty. A thread of the child
// that still points here notices by `claim`, which differs between any two owners of a state.
// A fast launch touches one line of this, one estimate and one line of shared memory. A state has 52 KiB,
// mostly estimates. Pages that no thread used cost nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/process/records.h"
#include "wire/shm/layout.h"

namespace carve::guest {

// The number of launching threads that have a state, per process and device. Launches of further threads pass
// the gate uncounted. States with an index of shm::work_threads or more share one line of shared memory.
inline constexpr unsigned max_launch_states = 256;

// The expected duration of one launch (launch/estimate.h). The key is that of a function, grid and block, or
// of another kind of launch; 0 means no entry.
struct Estimate {
  uint64_t key;
  uint64_t ns;
  uint32_t batch;     // The last batch that contained such a launch.
  uint32_t measured;  // Whether `ns` was measured; otherwise it is a guess.
};
inline constexpr unsigned estimates_bits = 10, estimates_ways = 2;

// The first use of an estimate in a batch.
struct EstimateUse {
  uint32_t batch;
  uint32_t estimate;  // Index of the estimate.
};
inline constexpr unsigned max_estimate_uses = 64;

// A stream as this thread uses it. `name` is the handle plus one; 0 means empty.
struct StreamEntry {
  uint64_t name;
  uint64_t pending;  // Estimated ns submitted since the last fence.
  uint64_t context;  // Context of a default stream, which differs in each context; otherwise 0.
  uint64_t key;      // StreamSlot::key while the stream has the slot.
  uint64_t since;    // Time of the oldest pending launch, or earlier.
  uint32_t slot;     // no_stream_slot if the stream has no fences.
  uint32_t unused;
};
inline constexpr unsigned stream_entry_bits = 3;
inline constexpr unsigned no_stream_slot = shm::work_streams;  // All slots are taken.

// A fence in flight.
struct Fence {
  uint64_t value;     // Value of the stream's word when all work before the fence is done.
  uint64_t ns;        // Estimated ns of the work that it covers.
  uint64_t begun_at;  // Time of the oldest launch that it covers, or earlier.
  uint64_t inserted_at;
  uint32_t slot;
  uint32_t batch;
  bool alone;  // Nothing else of the thread was in flight.
  bool guess;  // The duration was a guess.
};
inline constexpr unsigned max_fences = 32;

// Samples of the completion latency (launch/completion_latency.h).
struct LatencySample {
  uint64_t event[2], context;  // `context` owns the events; 0 if there are none.
  uint64_t stream;
  uint64_t latency_ns;
  uint32_t turn, taken;
  bool open, refused;
};

struct alignas(64) ThreadLaunchState {
  // Read by every launch.
  std::atomic<uint64_t> claim;  // Number of the claim in this program image; 0 if never claimed.
  uint64_t word;                // The LeaseWord under which launches need no further check.
  uint64_t fence_interval_ns;   // Pending work (ns) at which a stream gets a fence.
  uint64_t credit;              // Limit of `unfenced` (ns) for fast launches.
  uint64_t unfenced;
  uint64_t submitted;
  shm::ThreadWork* line;
  uint32_t launches_until_check;  // Launches until the next check of the deadline and the fences.
  uint32_t batch;                 // Number of the current batch, which is also the number of fences so far.

  std::atomic<uint32_t> owner;  // The thread's id; 0 if free.
  uint32_t device;              // Index in Control::devices.
  bool shared;                  // Other threads add to the same line: atomic additions.
  bool moved;                   // The current context may differ from `context`.
  bool waits;      // The thread waited for its last work, and has inserted no fence between launches since.
  bool disturbed;  // The thread has waited at a closed gate since it became busy, so the time includes other
                   // slices' work.
  uint32_t stall_escapes;    // Stall escapes since the last progress.
  uint32_t escape_launches;  // Launches that the current escape still admits.
  uint64_t context;
  uint64_t in_flight_limit;  // Limit of work in flight (ns).
  uint64_t in_flight;        // Estimated ns of the work before fences in flight.
  uint64_t without_slot;     // Estimated ns in streams without a slot; unfenced until the thread waits.

  // For updates of estimates (launch/busy_time.cc, poll_fences): the time of the last poll, and the
  // observations of an interval in which the device always had work of this thread.
  uint64_t polled_at, busy_ns, busy_work;
  uint64_t first_since;  // Latest possible time at which the oldest fence's work began.
  uint32_t busy_from, busy_fences;
  bool busy_open;
  // The values at the time when the thread became busy.
  uint64_t busy_since, submitted_then;
  uint64_t others_then;  // Submitted by the other threads of the process.
  uint32_t batch_then, lease_then;

  LatencySample sample;
  uint64_t total_then;  // Total of the busy word when the thread became busy.

  uint32_t fence_count;
  Fence fence[max_fences];
  StreamEntry stream[1 << stream_entry_bits];
  uint32_t estimate_uses;  // Number of uses in all batches; the array keeps the last ones.
  uint32_t updates;
  uint64_t longest;
  EstimateUse estimate_use[max_estimate_uses];
  Estimate estimate[1 << estimates_bits][estimates_ways];
};
static_assert(sizeof(ThreadLaunchState) <= 52 * 1024);

// The private part of a slot in ProcessWork::stream.
struct alignas(64) StreamSlot {
  SpinLock lock;                     // Held during the driver's call that inserts a fence.
  std::atomic<uint64_t> key{0};      // The stream that has the slot; 0 if destroyed.
  std::atomic<uint64_t> context{0};  // The stream's context, with which the slot is released.
  // For devices that cannot write fences: the event that completes at `event_fence`.
  uint64_t event GUARDED_BY(lock) = 0;
  uint64_t event_fence GUARDED_BY(lock) = 0;
};

// The page that the device writes to, at its address on each device.
struct FencePage {
  SpinLock lock;                   // Held to assign slots and to register the page, never while waiting.
  std::atomic<uint32_t> refusals;  // Consecutive refusals of a fence.
  std::atomic<uint64_t> address[shm::max_devices];
  StreamSlot stream[shm::work_streams];
  std::atomic<uint64_t> ending_waits;  // ns waited since the program began to exit.
  std::atomic<bool> ending;
};

}  // namespace carve::guest
