// This process as a member of its slice: whether it is one, which pages it shares with the agent, and what
// it holds. All of it lies in one private mapping that the kernel zeroes in a forked child
// (MADV_WIPEONFORK, Linux 4.14): the child finds "nobody asked yet", free locks and empty tables, attaches
// anew at its next call and cannot touch a lane of its parent's. A program that is not a slice does not even
// get the mapping.
//
// Cost when attached: two loads. When nobody is home: one access() in the life of the process.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bytes.h"
#include "guest/quota/launch_state.h"
#include "guest/quota/records.h"
#include "wire/shm/budget.h"
#include "wire/shm/layout.h"

namespace carve::guest {

enum class AttachState : uint32_t {
  unknown = 0,  // Nobody asked yet, or this is a forked child.
  attaching,    // One thread is at it; the others wait.
  refused,      // The agent did not answer in time, or said no. The next cuInit asks once more.
  unmanaged,    // Not a slice: left alone.
  attached,
};

// What this process has on record in one of its lanes. The report says the same, but others can write there.
struct alignas(64) LaneState {
  SpinLock lock;
  uint64_t recorded = 0;  // What the report's lane says.
  uint64_t target =
      0;  // What it should say: less, after a give-back that found the word never standing still.
};

// The primary context of one device (cuda/context.cc).
struct Primary {
  std::atomic<uint64_t> word{0};
  std::atomic<uint64_t> context{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint16_t> lane{0};
};

inline constexpr unsigned cached_ordinals = 64;

// A slice's budgets: one for each of its devices, and one for each device's bytes that live on the host.
inline constexpr unsigned budgets = 2 * shm::max_devices;
inline constexpr unsigned not_granted = budgets;  // No budget.
constexpr unsigned spilled(unsigned device) { return device + shm::max_devices; }

// Memory that the driver reserves in lumps and hands out in pieces (cuda/pool.h).
struct alignas(64) Pool {
  enum class Kind : uint32_t { none, charged, not_charged, graph, orphan };
  SpinLock lock;  // Held over the driver's call: a pool grows for one thread at a time.
  std::atomic<Kind> kind{Kind::none};
  std::atomic<uint64_t> handle{0};  // A CUmemoryPool; of the graphs' pool the device's ordinal plus one.
  std::atomic<uint32_t> live{0};    // Allocations that were not freed.
  std::atomic<uint32_t> handed{0};  // Counts all that there ever were; changed under the lock.
  Charge charge;
  // Pieces that were freed and not handed out again, as far as they can be known; `stream` may have them.
  struct FreeBlock {
    uint64_t at = 0, bytes = 0, stream = 0;
  } free_block[8];

  Bytes charge_bytes() const { return {charge.bytes}; }
};
inline constexpr uint64_t any_stream = ~uint64_t{0};
inline constexpr unsigned max_pools = 256;  // Of one process.

struct Process {
  std::atomic<AttachState> attach_state;
  uint16_t slot;
  bool asked_before;  // The long wait for an agent happens once.
  uint32_t device_count;
  const shm::Control* control;
  shm::Report* report;
  shm::ProcessWork* work;  // This process's part of the report, by its slot.
  const shm::Heartbeat* heartbeat;
  uint64_t hint[shm::max_devices];                          // From the environment: may only lower.
  std::atomic<uint8_t> device_of_ordinal[cached_ordinals];  // 0: not asked yet; else the index plus one.
  Primary primary[shm::max_devices];
  LaneState lane[budgets][shm::lanes];
  Records allocations;  // By pointer or handle: linear memory, arrays, imports; and the pieces of pools.
  Records contexts;
  Records green;    // Green contexts: `uses` is the device's ordinal.
  Records on_host;  // By pointer: what of an allocation lives on the host (cuda/spill.h); how many there are.
  std::atomic<uint32_t> spilled_count;

  // Virtual memory (cuda/physical.h).
  Records handles, physicals, mappings, pins, exported;
  std::atomic<uint64_t> last_physical;
  // Open descriptors of exported memory (cuda/descriptors.h).
  Records descriptors;
  std::atomic<uint32_t> descriptor_count;
  std::atomic<uint64_t> descriptor_round;  // 0 or 1.
  SpinLock settling;                       // Tried, never waited for.

  // Pools and the graphs that allocate. Counts, so that programs without any pay one load.
  std::atomic<uint32_t> pool_count;
  std::atomic<uint32_t> graph_count;
  Records graphs;  // By executable graph and device: the most that a launch reserves.
  Pool pool[max_pools];

  // Launches (cuda/busy_time.h).
  FencePage fence_page;
  ThreadLaunchState launch_state[max_launch_states];
};

// The process if it is attached, else null. For paths that must not ask.
extern std::atomic<Process*> process_page;
inline Process* attached() {
  Process* p = process_page.load(std::memory_order_acquire);
  return p != nullptr && p->attach_state.load(std::memory_order_acquire) == AttachState::attached ? p
                                                                                                  : nullptr;
}

struct Entered {
  Process* process;  // Null unless attached.
  bool refused;
};

// Settles whether this process is a slice, asking the agent at the first call. May wait up to ten seconds
// there. `again`: ask once more where the answer was a refusal.
Entered attach_slowly(bool again);
inline Entered enter() {
  Process* p = attached();
  return p != nullptr ? Entered{p, false} : attach_slowly(false);
}

// The devices of the slice, as the launch path sees them: none, so no gate, before the process is attached.
// A forked child reads its parent's until it has its own; the driver refuses its launches anyway.
struct Gates {
  std::atomic<uint32_t> count{0};
  std::atomic<const shm::ControlDevice*> first{nullptr};
};
extern Gates gates;

}  // namespace carve::guest
