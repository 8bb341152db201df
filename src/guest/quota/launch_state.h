// What a launching thread knows of its own work, and what the process knows of its streams: the private half
// of wire/shm/work.h. It lies in the Process page, so a forked child finds it empty, and a thread of the
// child that still points here sees it by `claim`, which differs between any two owners of a place.
//
// A launch that passes touches one line of this, one entry of the estimates and one line of shared memory.
// 52 KiB a thread, of which the estimates are most; pages that no thread used cost nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/quota/records.h"
#include "wire/shm/layout.h"

namespace carve::guest {

// Threads of one process and device that launch and can be told apart; more pass the gate uncounted. Those
// from shm::work_threads on share one line of shared memory.
inline constexpr unsigned max_launch_states = 256;

// How long one launch takes (cuda/estimate.h). The key names function, grid and block, or whatever else is
// launched; 0: nothing known.
struct Estimate {
  uint64_t key;
  uint64_t ns;
  uint32_t batch;     // The last batch that it was part of.
  uint32_t measured;  // Whether `ns` was ever seen; else it is a guess.
};
inline constexpr unsigned estimates_bits = 10, estimates_ways = 2;

// One that took part in a batch, for the first time in it.
struct EstimateUse {
  uint32_t batch;
  uint32_t estimate;  // Its number.
};
inline constexpr unsigned max_estimate_uses = 64;

// A stream as this thread uses it. `name` is the handle plus one, 0: nothing here.
struct StreamEntry {
  uint64_t name;
  uint64_t pending;  // Estimated ns put on it since the last marker.
  uint64_t context;  // Of the default streams, which mean another stream in each context; else 0.
  uint64_t key;      // StreamPlace::key while the place is its.
  uint32_t slot;     // shm::work_streams: every place is taken, it goes without markers.
  uint32_t unused;
};
inline constexpr unsigned stream_entry_bits = 3;
inline constexpr unsigned no_stream_slot = shm::work_streams;  // As a Memo's `place`: all are taken.

// A marker that was not seen yet.
struct Fence {
  uint64_t value;  // What the stream's word says when all before it is done.
  uint64_t ns;     // Estimated, of the work that it ends.
  uint64_t inserted_at;
  uint32_t slot;
  uint32_t batch;
  bool alone;  // Nothing else of the thread's was under way.
  bool guess;  // How long it takes was not known.
};
inline constexpr unsigned max_fences = 32;

// How late the host is (cuda/completion_latency.h).
struct LatencySample {
  uint64_t event[2], context;  // Of that context; 0: none.
  uint64_t stream;
  uint64_t latency_ns;  // ns
  uint32_t turn, taken;
  bool open, refused;
};

struct alignas(64) ThreadLaunchState {
  // What every launch reads.
  std::atomic<uint64_t> claim;  // Counts the owners of all places in this program image; 0: nobody's.
  uint64_t word;                // The LeaseWord under which launches pass without another look.
  uint64_t fence_interval_ns;   // A stream gets a marker at this much pending work.
  uint64_t credit;              // `unmarked` may grow to this before somebody looks.
  uint64_t unfenced;
  uint64_t submitted;
  shm::ThreadWork* line;
  uint32_t launches_until_deadline_check;  // Launches until the deadline is looked at.
  uint32_t batch;                          // Counts markers.

  std::atomic<uint32_t> owner;  // The thread's id; 0: the place is free.
  uint32_t device;              // Index in Control::devices.
  bool shared;                  // Its line is others' too: atomic additions.
  bool moved;                   // Its current context may be another than `context`.
  bool waits;      // It waited for the last of its work, and put no marker between its launches since.
  bool disturbed;  // It stood at a closed gate since it went busy: its time was others' too.
  uint32_t stall_escapes;    // Times that its work was found stuck since it last moved,
  uint32_t escape_launches;  // and launches that may go all the same.
  uint64_t context;
  uint64_t in_flight_limit;  // Of work in flight.
  uint64_t in_flight;        // Estimated ns behind the marks that were not seen.
  uint64_t without_slot;     // Of streams without a place: unmarked until everything is waited for.

  // Learning (cuda/busy_time.cc, look): the last look, and what was seen of an interval in which the device
  // was never without work of this thread.
  uint64_t polled_at, busy_ns, busy_work;
  uint64_t first_since;  // The oldest mark was the oldest by then at the latest.
  uint32_t busy_from, busy_fences;
  bool busy_open;
  // Since it was idle.
  uint64_t busy_since, submitted_then;
  uint32_t batch_then;

  LatencySample sample;
  uint64_t total_then;  // Of the busy word, when it went busy.

  uint32_t fence_count;
  Fence fence[max_fences];
  StreamEntry stream[1 << stream_entry_bits];
  uint32_t estimate_uses;  // Of all batches; the last ones are kept.
  uint32_t updates;
  uint64_t longest;
  EstimateUse estimate_use[max_estimate_uses];
  Estimate estimate[1 << estimates_bits][estimates_ways];
};
static_assert(sizeof(ThreadLaunchState) <= 52 * 1024);

// What belongs to a place in ProcessWork::stream.
struct alignas(64) StreamSlot {
  SpinLock lock;                        // Held over the driver's call that puts a marker in.
  std::atomic<uint64_t> key{0};         // The stream that has it; 0: that one is gone.
  std::atomic<uint64_t> context{0};     // With which it goes.
  uint64_t event = 0, event_fence = 0;  // Where the device cannot write: what completes at `event_mark`.
};

// The page that the device writes to, as each device addresses it.
struct FencePage {
  SpinLock lock;                   // Held to give out places and to register the page; not to wait.
  std::atomic<uint32_t> refusals;  // Times that a marker was refused in a row.
  std::atomic<uint64_t> address[shm::max_devices];
  StreamSlot stream[shm::work_streams];
  std::atomic<uint64_t> ending_waits;  // ns waited since the program began to end.
  std::atomic<bool> ending;
};

}  // namespace carve::guest
