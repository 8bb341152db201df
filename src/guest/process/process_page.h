// The attachment of this process to its slice: attach state, shared memory with the agent, and what it holds.
// All of it is in one private mapping that the kernel zeroes in a forked child (MADV_WIPEONFORK, Linux 4.14).
// The child finds AttachState::unknown, free locks and empty tables. It attaches again at its next call and
// cannot write to its parent's lanes. A process outside any slice does not even get the mapping.
//
// Cost when attached: two loads. Cost without an agent: one access() per process.
//
// Lock order. Six kinds of spin lock are in the page. A thread takes them in this order, and a fork frees all
// of them.
// * Memory: Pool::lock (to enter a pool, the lock of the last, unused element first, then the pool's; that of
//   a further pool is only tried), `exporting`, `sharing`, LaneState::lock, the lock of a shard of Records.
// * Launches: FencePage::lock, StreamSlot::lock (only tried under FencePage::lock).
// No thread holds locks of both rows. LaneState's and the shards' are held for a few stores; the others may
// be held during one call of the driver, but never during a call of a hook.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bytes.h"
#include "guest/process/launch_state.h"
#include "guest/process/records.h"
#include "wire/shm/budget.h"
#include "wire/shm/layout.h"

namespace carve::guest {

enum class AttachState : uint32_t {
  unknown = 0,  // The agent has not been called yet, or this is a forked child.
  attaching,    // One thread is attaching; the others wait.
  refused,      // The agent refused or timed out. The next cuInit tries once more.
  unmanaged,    // Not in a slice, and therefore not limited.
  attached,
};

// A process's record of one of its lanes. Other processes can write the report's copy.
struct alignas(64) LaneState {
  SpinLock lock;
  uint64_t recorded GUARDED_BY(lock) = 0;  // Bytes in the report's lane.
  // Bytes that the lane's allocations use. `recorded` also includes the lane's spare bytes
  // (wire/shm/spare.h), bytes that were withdrawn since its last change, and bytes of a release that could
  // not change the word.
  uint64_t target GUARDED_BY(lock) = 0;
  uint32_t returned GUARDED_BY(lock) = 0;  // Number of withdrawn bytes that the lane has returned.
  unsigned keeps GUARDED_BY(lock) = 0;     // The lane keeps spare bytes for this many charges and releases.
};

// The primary context of one device (context/context.cc).
struct Primary {
  std::atomic<uint64_t> word{0};
  std::atomic<uint64_t> context{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint16_t> lane{0};
};

inline constexpr unsigned cached_ordinals = 64;

// A slice's budgets: one per device, and one per device for bytes in host memory.
inline constexpr unsigned budgets = 2 * shm::max_devices;
inline constexpr unsigned not_granted = budgets;  // Denotes no budget.
constexpr unsigned spilled(unsigned device) { return device + shm::max_devices; }

// Value of a Charge's `device` for the bytes of a shared block; its `bytes` is the block's index.
inline constexpr uint16_t in_shared_block = 0xfffe;

// Memory that the driver reserves in chunks and suballocates (memory/memory_pool.h).
struct alignas(64) Pool {
  enum class Kind : uint32_t { none, charged, not_charged, graph, orphan };
  SpinLock lock;  // Held during the driver's call, so that a pool grows for one thread at a time.
  std::atomic<Kind> kind{Kind::none};
  std::atomic<uint64_t> handle{0};  // A CUmemoryPool; the graph memory pool has the ordinal plus one.
  std::atomic<uint32_t> live{0};    // Allocations that have not been freed.
  std::atomic<uint16_t> device{0};  // That of `charge`, readable without the lock.
  std::atomic<uint32_t> handed{0};  // Counts all allocations ever made; changed under the lock.
  Charge charge GUARDED_BY(lock);   // Does not include the bytes of the shared block.
  // Name of the shared block of an exported or imported pool (memory/shared_pools.cc). 0 if there is none.
  std::atomic<uint64_t> block_name{0};
  uint64_t block GUARDED_BY(lock) = 0;  // Index plus one, if this process has a use of the block.
  // Bytes that the pool released but other processes may still hold.
  uint64_t released GUARDED_BY(lock) = 0;
  // Known free blocks, which were freed and not allocated again. `stream` may use them.
  struct FreeBlock {
    uint64_t at = 0, bytes = 0, stream = 0;
  };
  FreeBlock free_block[8] GUARDED_BY(lock);
};
inline constexpr uint64_t any_stream = ~uint64_t{0};
inline constexpr unsigned max_pools = 256;  // Per process.

struct Process {
  std::atomic<AttachState> attach_state;
  uint16_t slot;
  bool asked_before;  // The long wait for an agent has happened; it happens only once.
  uint32_t device_count;
  const shm::Control* control;
  shm::Report* report;
  shm::ProcessWork* work;  // This process's part of the report, by its slot.
  const shm::Heartbeat* heartbeat;
  uint64_t hint[shm::max_devices];                          // From the environment; can only lower the quota.
  std::atomic<uint8_t> device_of_ordinal[cached_ordinals];  // 0 before the look-up, then the index plus one.
  Primary primary[shm::max_devices];
  std::atomic<unsigned> next_lane;  // Counts the charging threads; each begins with the next lane.
  LaneState lane[budgets][shm::lanes];
  Records allocations;  // By pointer or handle: linear memory, arrays, imports, suballocations of pools.
  Records contexts;
  Records green;    // Green contexts: `uses` is the device's ordinal.
  Records on_host;  // By pointer: bytes of an allocation in host memory (memory/spill.h).
  std::atomic<uint32_t> spilled_count;

  // Virtual memory (memory/physical.h).
  Records handles, physicals, mappings, pins;
  std::atomic<uint64_t> last_physical;

  // Memory that other processes may also hold (quota/shared_block.h). The lock keeps this process's bit in a
  // block consistent with whether it has uses.
  SpinLock exporting;  // One export at a time decides whether the memory is already a shared block.
  SpinLock sharing;
  Records block_uses GUARDED_BY(sharing);  // By a block's index plus one.

  // Memory pools, and graphs that allocate. The counts let programs without any of them check with one load.
  std::atomic<uint32_t> pool_count;
  std::atomic<uint32_t> graph_count;
  Records graphs;  // By executable graph and device: the most that a launch reserves.
  Pool pool[max_pools];

  // Launches (launch/busy_time.h).
  FencePage fence_page;
  ThreadLaunchState launch_state[max_launch_states];
};

// Null unless this process is attached. For paths that must not call the agent.
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

// Determines whether this process is in a slice, and calls the agent the first time. That may take up to ten
// seconds. If `again` is set, tries once more after a refusal.
Entered attach_slowly(bool again);
inline Entered enter() {
  Process* p = attached();
  return p != nullptr ? Entered{p, false} : attach_slowly(false);
}

// The slice's devices for the launch path. The list is empty until the process is attached, so until then
// there is no gate. A forked child reads its parent's list until it has its own; the driver rejects its
// launches anyway.
struct Gates {
  std::atomic<uint32_t> count{0};
  std::atomic<const shm::ControlDevice*> first{nullptr};
};
extern Gates gates;

}  // namespace carve::guest
