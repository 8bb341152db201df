// The shared memory of the agent and a slice, byte for byte (FORMAT.md describes it).
//
// The agent writes `Control`, which contains what the slice may use and is read-only for the slice. The slice
// writes `Report`, which contains what it uses. The agent checks every report against the driver. A slice
// that writes false values into its own report harms only itself.
//
// There is one Control and one Report per slice, which all its processes share, and one Heartbeat per agent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/shm/work.h"

namespace carve::shm {

// The name of the report page's memfd, which /proc/PID/maps shows for each process that has it mapped.
inline constexpr const char* report_page_name = "carve-report";

inline constexpr uint64_t control_magic = 0x314c'5443'5652'4143;  // "CARVCTL1" in a hex dump.
inline constexpr uint64_t report_magic = 0x3150'4552'5652'4143;   // "CARVREP1"
inline constexpr uint32_t layout_version = 7;  // Changes whenever an offset, a width or a meaning changes.

inline constexpr unsigned max_devices = 16;     // As many as an NVLink domain in one machine has.
inline constexpr unsigned max_processes = 512;  // Per slice, alive at the same time.
// Threads of one process that can charge one device at the same time.
inline constexpr unsigned lanes = 4;

// Whether the guest library enforces the memory quota.
enum class Memory : uint32_t { not_limited = 0, limited = 1 };

// One granted device, as its slice sees it.
struct ControlDevice {
  uint8_t uuid[16];        //   0  As cuDeviceGetUuid and NVML report it. The order is the slice's own.
  uint64_t quota;          //  16  Memory quota in bytes, over all processes of the slice.
  uint64_t context_bytes;  //  24  Bytes of one context, measured by the agent; 0 if charged to the reserve.
  // 32  CLOCK_MONOTONIC ns: the end of the lease, even if no agent ends it. 0 means no deadline.
  std::atomic<uint64_t> lease_deadline;
  // The fallback timetable, used without an agent: windows of `length` that begin at `offset` in each
  // `period`, in CLOCK_MONOTONIC ns. A period of 0 means that the gate is always open.
  std::atomic<uint64_t> fallback_period;  //  40
  std::atomic<uint64_t> fallback_offset;  //  48
  std::atomic<uint64_t> fallback_length;  //  56
  uint32_t share;                         //  64  Basis points of the device's compute.
  uint32_t policy;                        //  68  core::Policy as a number. The guest library only shows it.
  Memory memory;                          //  72  Whether the quota is enforced; not with isolation none.
  uint32_t whole;                         //  76  1 if the slice has the whole device, else 0.
  uint64_t spill;  //  80  Bytes beyond the quota allowed in host memory, as managed memory; 0 if none.
  std::atomic<uint64_t> lease;              //  88  LeaseWord. The launch path reads only this word.
  uint32_t arbiter;                         //  96  Index in Heartbeat::arbiter of the arbiter to wake.
  std::atomic<uint32_t> fence_interval_ns;  // 100  Estimated work per fence.
  // 104  The slice's part of the device's energy since its grant (microjoules).
  std::atomic<uint64_t> energy_microjoules;
  uint64_t unused[2];  // 112
};
static_assert(sizeof(ControlDevice) == 128 && offsetof(ControlDevice, lease_deadline) == 32 &&
              offsetof(ControlDevice, memory) == 72 && offsetof(ControlDevice, spill) == 80 &&
              offsetof(ControlDevice, lease) == 88 && offsetof(ControlDevice, energy_microjoules) == 104);

// The process in a slot. Only the agent writes it. After a restart, the agent uses it to find its processes.
struct ControlProcess {
  uint32_t pid;         //  0  In the agent's pid namespace; 0 if the slot is free.
  uint32_t inner_pid;   //  4  The pid in the process's own pid namespace, which NVML shows inside the slice.
  uint64_t start_time;  //  8  Clock ticks since boot, field 22 of /proc/PID/stat: distinguishes a reused pid.
  uint64_t image;       // 16  Changes with each exec (attach.h).
  uint32_t generation;  // 24  Counts the processes that have had the slot.
  uint32_t reserved;    // 28
};
static_assert(sizeof(ControlProcess) == 32);

struct Control {
  uint64_t magic;                           //    0
  uint32_t layout;                          //    8
  uint32_t device_count;                    //   12
  std::atomic<uint64_t> epoch;              //   16  Incremented after each change of anything below.
  char slice[64];                           //   24  Name for messages; NUL-terminated.
  uint64_t unused[5];                       //   88
  ControlDevice devices[max_devices];       //  128
  ControlProcess processes[max_processes];  // 2176
};
static_assert(offsetof(Control, devices) == 128 && offsetof(Control, processes) == 2176);
static_assert(sizeof(Control) == 2176 + 32 * max_processes);

// The bytes that a slice holds on one device, in one 16-byte word that is exchanged as a whole (budget.h).
struct alignas(64) Budget {
  alignas(16) uint64_t used;       //  0  Bytes charged.
  uint64_t tag;                    //  8  The last change: budget.h, Tag.
  std::atomic<uint64_t> recorded;  // 16  A change that its own writer has recorded in its lane.
};
static_assert(sizeof(Budget) == 64 && offsetof(Budget, recorded) == 16);

// One writer's record of its charges on one device (budget.h). Each lane has its own cache line, so that
// writers do not slow each other down.
struct alignas(64) Lane {
  std::atomic<uint64_t> announced;  //  0  Number of the last change begun.
  std::atomic<uint64_t> seen;       //  8  Highest number of a change that was found in the budget word.
  struct Change {
    uint64_t from, to;  //     Bytes that this lane holds before and after the change.
  } change[2];          // 16  Change number n is in change[n % 2].
  // Change number `joined_number` of this lane happens together with the change `joined` of another lane,
  // which the budget word names (budget.h, Tag). 0 means that there is none.
  std::atomic<uint64_t> joined;         // 48
  std::atomic<uint64_t> joined_number;  // 56
};
static_assert(sizeof(Lane) == 64 && offsetof(Lane, change) == 16 && offsetof(Lane, joined) == 48);

// Bytes that a lane has charged but no allocation uses (spare.h). Zero until the writer meets another writer.
struct alignas(64) Spare {
  std::atomic<uint64_t> word;  //  0  SpareWord.
  // The number of withdrawn bytes that the lane has returned, before and after change n, in returned[n % 2].
  struct Returned {
    uint32_t from, to;
  };
  std::atomic<Returned> returned[2];  //  8
  uint64_t unused[5];                 // 24
};
static_assert(sizeof(Spare) == 64 && offsetof(Spare, returned) == 8);
static_assert(std::atomic<Spare::Returned>::is_always_lock_free);

struct ReportProcess {
  Lane lane[max_devices][lanes];    //    0
  Spare spare[max_devices][lanes];  // 4096
};
static_assert(sizeof(ReportProcess) == 8192 && offsetof(ReportProcess, spare) == 4096);

// Memory that a process exported: charged to the slice, because it may outlive the process
// (shared_blocks.h).
struct alignas(64) SharedBlock {
  std::atomic<uint64_t> state;   //   0  SharedBlockState, and which process is changing it.
  std::atomic<uint64_t> name;    //   8  Importers find the block by it.
  std::atomic<uint32_t> device;  //  16  Index in Control::devices.
  std::atomic<uint32_t> kind;    //  20  SharedBlockKind.
  std::atomic<uint64_t> within;  //  24  Name of another block that keeps this one while it is charged.
  // For a pool: the bytes that remain charged at most if only its exporter, the process in slot `exporter`,
  // holds the pool. UINT64_MAX means all.
  std::atomic<uint64_t> keep;      //  32
  std::atomic<uint32_t> exporter;  //  40
  // Number of pools that the exporter itself imported, with pointers. They hold the block like imports of
  // others.
  std::atomic<uint32_t> own_imports;  //  44
  std::atomic<uint32_t> joins;        //  48  Incremented before a process sets its bit.
  uint32_t unused[3];                 //  52
  Lane lane;                          //  64  Bytes charged for it.
  // Bit n % 64 of word n / 64 is set if the process in slot n holds the block.
  std::atomic<uint64_t> holder[max_processes / 64];  // 128
};
static_assert(sizeof(SharedBlock) == 192 && offsetof(SharedBlock, lane) == 64 &&
              offsetof(SharedBlock, holder) == 128);
// Maximum number of blocks that a slice can have charged at the same time. Common allocators use segments of
// 20 MiB, so this covers 160 GiB.
inline constexpr unsigned max_shared_blocks = 8192;

// The bytes charged per device, and the lanes that changed them (budget.h). In a Report, 64 bytes precede it,
// so that the lanes of each process have a page of their own, and their spare bytes have another page, which
// is not touched until it is used.
struct Charges {
  Budget budget[max_devices];       //       0
  Lane growth[max_devices];         //    1024  The agent's own lane: memory that no call requested.
  std::atomic<uint64_t> block_end;  //    2048  No block from this index on has ever been used.
  uint64_t pad[7];                  //    2056
  // Bit n % 64 of word n / 64 is set if a lane of the process in slot n may have spare bytes.
  std::atomic<uint64_t> spare_slots[max_devices][max_processes / 64];  // 2112
  uint64_t pad2[(4032 - 3136) / 8];                                    // 3136
  ReportProcess process[max_processes];                                // 4032
  SharedBlock block[max_shared_blocks];                                // 4198336
};
static_assert(offsetof(Charges, growth) == 1024 && offsetof(Charges, block_end) == 2048);
static_assert(offsetof(Charges, process) == 4032 && offsetof(Charges, block) == 4198336);
static_assert(offsetof(Charges, spare_slots) == 2112);
static_assert(sizeof(Charges) == 4198336 + 192 * max_shared_blocks);

// Objects that the slice's own processes exported (exports.h). Each word identifies one object; 0 means free.
inline constexpr unsigned export_sets = 1024, export_ways = 8;
struct Exports {
  std::atomic<uint64_t> word[export_sets][export_ways];
};
static_assert(sizeof(Exports) == 65536);

// Work in flight of the slice's processes (work.h), by slot.
struct WorkPages {
  ProcessWork process[max_processes];
};

struct Report {
  uint64_t magic;   //       0
  uint32_t layout;  //       8
  // 12  Failed assertions of the guest library in all processes of the slice (guest/linkage/ensure.h).
  std::atomic<uint32_t> ensure_failures;
  std::atomic<uint64_t> quota_refused_ns;  //  16  CLOCK_MONOTONIC of the last refusal by the quota, or 0.
  uint64_t unused[5];                      //  24
  Charges charges;                         //      64  Bytes in the device's memory.
  uint64_t pad[8];                         // 5771264
  Charges spill;    // 5771328  Bytes in host memory: ControlDevice::spill. It has no shared blocks.
  Exports exports;  // 11542528
  WorkPages work;   // 11608064
};
static_assert(offsetof(Report, ensure_failures) == 12 && offsetof(Report, quota_refused_ns) == 16);
static_assert(offsetof(Report, unused) == 24);
static_assert(offsetof(Report, charges) == 64 && offsetof(Report, spill) == 5771328);
static_assert(offsetof(Report, exports) == 11542528 && offsetof(Report, work) == 11608064);
static_assert(sizeof(Report) == 11608064 + 8192 * max_processes);

// One page for all slices of an agent. If it is older than 200 ms, it is stale: no agent is running.
struct Heartbeat {
  std::atomic<uint64_t> monotonic_ns;  //  0  CLOCK_MONOTONIC of the agent's last loop.
  ArbiterWord arbiter[max_devices];    // 64  By the device's index on the node, not in the slice.
};
static_assert(offsetof(Heartbeat, arbiter) == 64 && sizeof(Heartbeat) == 64 + 64 * max_devices);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace carve::shm
