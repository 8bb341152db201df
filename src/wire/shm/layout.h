// The pages that the agent and a slice share, byte for byte (FORMAT.md tells their story).
//
// `Control` is written by the agent and read-only to the slice: what the slice may use. `Report` is
// written by the slice: what it uses. The agent believes nothing in a report without checking it
// against the driver; a slice that scribbles over its own report harms itself alone.
//
// One Control and one Report per slice, shared by all its processes; one Heartbeat per agent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/shm/work.h"

namespace carve::shm {

inline constexpr uint64_t control_magic = 0x314c'5443'5652'4143;  // "CARVCTL1" in a hex dump.
inline constexpr uint64_t report_magic = 0x3150'4552'5652'4143;   // "CARVREP1"
inline constexpr uint32_t layout_version = 2;  // Raised by any change of an offset, a width or a meaning.

inline constexpr unsigned max_devices = 16;     // As many as any one machine's NVLink domain holds.
inline constexpr unsigned max_processes = 512;  // Of one slice, alive at once.
inline constexpr unsigned lanes =
    4;  // Threads of one process that can charge one device at the same instant.

// Whether the agent wants the library to hold back allocations.
enum class Memory : uint32_t { not_limited = 0, limited = 1 };

// One granted device, as its slice sees it.
struct ControlDevice {
  uint8_t uuid[16];  //  0  The device, as cuDeviceGetUuid and NVML name it; the order is the slice's own.
  uint64_t quota;    // 16  Bytes this slice may hold on it, over all its processes.
  uint64_t
      context_bytes;  // 24  What one context takes on it, as the agent measured; 0: charged to the reserve.
  std::atomic<uint64_t>
      lease_deadline;  // 32  CLOCK_MONOTONIC ns: the lease ends then, even with nobody to end it; 0: never.
  // The timetable for the time without an agent: windows of `length` beginning at `offset` in each `period`,
  // CLOCK_MONOTONIC ns; period 0: open.
  std::atomic<uint64_t> fallback_period;  // 40
  std::atomic<uint64_t> fallback_offset;  // 48
  std::atomic<uint64_t> fallback_length;  // 56
  uint32_t share;                         // 64  Basis points of the device's compute.
  uint32_t policy;                        // 68  core::Policy, as a number; shown, not obeyed, by the library.
  Memory memory;                          // 72  Whether the quota is enforced (isolation none: it is not).
  uint32_t reserved;                      // 76
  uint64_t spill;  // 80  Bytes beyond the quota that may live on the host, as managed memory; 0: none.
  std::atomic<uint64_t> lease;  //  88  LeaseWord. The launch path reads this word and nothing else.
  uint32_t arbiter;             //  96  Which of Heartbeat::arbiter to wake.
  std::atomic<uint32_t> fence_interval_ns;  // 100  Estimated work per marker.
  uint64_t unused[3];                       // 104
};
static_assert(sizeof(ControlDevice) == 128 && offsetof(ControlDevice, lease_deadline) == 32 &&
              offsetof(ControlDevice, memory) == 72 && offsetof(ControlDevice, spill) == 80 &&
              offsetof(ControlDevice, lease) == 88);

// Who sits in a process slot. The agent alone writes it, so that it finds its slices again after a restart.
struct ControlProcess {
  uint32_t pid;         //  0  In the agent's pid namespace; 0: the slot is free.
  uint32_t inner_pid;   //  4  The same process in its own pid namespace: what NVML shows inside the slice.
  uint64_t start_time;  //  8  Clock ticks since boot, field 22 of /proc/PID/stat: tells a reused pid apart.
  uint64_t image;       // 16  Differs after each exec (attach.h).
  uint32_t generation;  // 24  Counts the slot's occupants.
  uint32_t reserved;    // 28
};
static_assert(sizeof(ControlProcess) == 32);

struct Control {
  uint64_t magic;                           //    0
  uint32_t layout;                          //    8
  uint32_t device_count;                    //   12
  std::atomic<uint64_t> epoch;              //   16  Raised whenever the agent changed anything below.
  char slice[64];                           //   24  Its name, for messages; NUL-terminated.
  uint64_t unused[5];                       //   88
  ControlDevice devices[max_devices];       //  128
  ControlProcess processes[max_processes];  // 2176
};
static_assert(offsetof(Control, devices) == 128 && offsetof(Control, processes) == 2176);
static_assert(sizeof(Control) == 2176 + 32 * max_processes);

// What a slice holds on one device: one 16-byte word, exchanged as a whole (budget.h).
struct alignas(64) Budget {
  alignas(16) uint64_t used;  //  0  Bytes charged.
  uint64_t tag;               //  8  Who made the last change: budget.h, Tag.
};
static_assert(sizeof(Budget) == 64);

// One writer's record of its charges on one device (budget.h). A cache line, so that writers do not disturb
// each other.
struct alignas(64) Lane {
  std::atomic<uint64_t> announced;  //  0  The number of the last change begun.
  std::atomic<uint64_t> seen;  //  8  The highest number of a change that somebody found in the budget word.
  struct Change {
    uint64_t from, to;  //     What this lane holds before and after the change.
  } change[2];          // 16  Change number n stands in change[n % 2].
};
static_assert(sizeof(Lane) == 64 && offsetof(Lane, change) == 16);

struct ReportProcess {
  Lane lane[max_devices][lanes];  //    0
};
static_assert(sizeof(ReportProcess) == 4096);

// The bytes charged per device, and the lanes that changed them (budget.h). In a Report 64 bytes precede it,
// so that the lanes of each process have a page of their own.
struct Charges {
  Budget budget[max_devices];            //    0
  Lane growth[max_devices];              // 1024  The agent's own lane: memory that no call asked for.
  uint64_t pad[(4032 - 2048) / 8];       // 2048
  ReportProcess process[max_processes];  // 4032
};
static_assert(offsetof(Charges, growth) == 1024 && offsetof(Charges, process) == 4032);
static_assert(sizeof(Charges) == 4032 + 4096 * max_processes);

// What the slice's own processes exported (exports.h): each word names one object, 0 is free.
inline constexpr unsigned export_sets = 1024, export_ways = 8;
struct Exports {
  std::atomic<uint64_t> word[export_sets][export_ways];
};
static_assert(sizeof(Exports) == 65536);

// What the slice's processes have running (work.h), by slot.
struct WorkPages {
  ProcessWork process[max_processes];
};

struct Report {
  uint64_t magic;      //       0
  uint32_t layout;     //       8
  uint32_t reserved;   //      12
  uint64_t unused[6];  //      16
  Charges charges;     //      64  Bytes in the device's memory.
  uint64_t pad[8];     // 2101248
  Charges spill;       // 2101312  Bytes that live on the host: ControlDevice::spill.
  Exports exports;     // 4202496
  WorkPages work;      // 4268032
};
static_assert(offsetof(Report, charges) == 64 && offsetof(Report, spill) == 2101312);
static_assert(offsetof(Report, exports) == 4202496 && offsetof(Report, work) == 4268032);
static_assert(sizeof(Report) == 4268032 + 8192 * max_processes);

// One page for all slices of an agent. Stale after 200 ms: nobody is home.
struct Heartbeat {
  std::atomic<uint64_t> monotonic_ns;  //  0  CLOCK_MONOTONIC when the agent last went round.
  ArbiterWord arbiter[max_devices];    // 64  By the machine's devices, not the slice's.
};
static_assert(offsetof(Heartbeat, arbiter) == 64 && sizeof(Heartbeat) == 64 + 64 * max_devices);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace carve::shm
