// The simulated GPU as bytes: one shared file per device, mapped by every process that would open
// /dev/nvidia0 on real hardware. The file holds what the silicon and the kernel driver would hold: the facts
// of the device, the owner of each amount of memory, up to 64 contexts of 64 channels, each a ring of 1,024
// operations, and the state of the engines.
//
// FORMAT.md describes each word: its meaning, which process writes it, and what happens when a writer dies
// between two stores. The file is sparse: 257 MiB long, of which an idle device has touched about 300 KiB. A
// channel in use costs 64 KiB more. `lock` guards all words, except where a comment allows reading without
// it.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace carve::sim {

inline constexpr uint64_t device_magic = 0x3155504745565243;  // "CRVEGPU1", little endian
inline constexpr uint64_t set_magic = 0x3154455345565243;     // "CRVESET1"
inline constexpr uint32_t layout_version = 5;

inline constexpr unsigned max_devices = 16;   // In a set.
inline constexpr unsigned max_contexts = 64;  // On a device; the driver refuses the 65th.
inline constexpr unsigned max_work_samples = 64;
inline constexpr unsigned max_channels = 64;     // In a context; streams beyond them share one.
inline constexpr unsigned ring_size = 1024;      // Operations in flight in one channel; then a launch blocks.
inline constexpr unsigned copy_engines = 3;      // To the device, from it, inside it.
inline constexpr unsigned max_dependencies = 3;  // Per operation; further ones are joined by marks.
inline constexpr unsigned max_clients = 1024;    // Processes attached to a set.
inline constexpr unsigned max_segments = 4096;   // Parts of a device's memory that processes can share.
inline constexpr unsigned max_holders = 7;       // Processes recorded for a segment; more may hold it.
inline constexpr unsigned max_xids = 64;         // Errors kept, for event sets that read late.
inline constexpr unsigned max_accounted =
    4000;  // Ended processes in a device's accounts, as on real devices.
inline constexpr uint64_t memory_block_bytes = 2ull << 20;  // Device memory is given out in pieces of 2 MiB.
inline constexpr uint64_t never_time = UINT64_MAX;          // A time that is never reached.
inline constexpr uint64_t forever_ns = 1ull << 62;          // The duration of a kernel that hangs.

enum class OpKind : uint8_t { mark, kernel, to_device, to_host, on_device, host };

// The number of operations that another channel of the same context must have completed before.
struct Dependency {
  uint16_t channel;
  uint16_t reserved;
  uint32_t sequence;  // The low half of the Channel::completed that satisfies the dependency.
};

inline constexpr uint8_t op_hung = 1;         // Ends when the fault is cleared.
inline constexpr uint8_t op_cooperative = 2;  // Starts only when all of its width is free.

struct Op {
  OpKind kind;
  uint8_t flags;
  uint8_t dependency_count;
  uint8_t reserved;
  uint16_t width;        // Number of multiprocessors that the kernel can fill.
  int16_t priority;      // In the driver's order: a lower value is more urgent.
  uint64_t order;        // Position among all operations of the context.
  uint64_t duration_ns;  // At full width, without other kernels.
  uint64_t remaining_ns;
  uint64_t end_ns;  // When the operation completed, as reported by an event.
  Dependency dependencies[max_dependencies];
};
static_assert(sizeof(Op) == 64);

enum class Head : uint8_t { none, blocked, ready, running, waiting_for_host };

struct Channel {
  uint64_t submitted;  // Operations ever pushed; operation number n is stored at ring[n % ring_size].
  uint64_t completed;  // Operations ever finished. May be read without the lock.
  uint64_t since_ns;   // When the head began to run with `granted`.
  uint16_t granted;    // Multiprocessors that the head has now.
  Head head;
  uint8_t blocking;  // Takes part in the legacy default stream's order.
  // For a channel of a green context: its kernels share `partition` multiprocessors, from `partition_first`
  // on, with the channels that have the same two values. 0 means all multiprocessors of the device.
  uint16_t partition_first, partition;
  uint64_t spare[4];
};
static_assert(sizeof(Channel) == 64);

// Recent busy share. NVML's "utilisation" is the share in the last complete window of 1/6 s.
struct Window {
  uint64_t start_ns;
  uint64_t busy_at_start_ns;
  uint32_t last_percent;
  uint32_t reserved;
};

struct Context {
  uint32_t in_use;
  uint32_t client;  // Slot in the set's table of processes.
  uint64_t
      client_generation;    // Differs from the slot's if the process died and another process took its slot.
  uint64_t serial;          // Never used twice on one device.
  uint64_t overhead_bytes;  // Overhead of the context itself.
  uint64_t block_bytes;     // Its allocations, rounded up to whole blocks.
  uint64_t managed_bytes;   // Its managed memory that is on the device; a process that needs room evicts it.
  uint64_t next_order;
  uint64_t active;   // Bit per channel that has operations.
  uint64_t busy_ns;  // Engine time used so far.
  uint64_t kernels;  // Completed so far.
  uint32_t error;    // Sticky CUresult. May be read without the lock.
  uint32_t reserved;
  Window window;
  uint64_t sampled_busy_ns;  // `busy_ns` at the last period of WorkSamples.
  uint64_t spare[17];
  Channel channels[max_channels];
};

// A client's memory outside its contexts: pools, memory of cuMemCreate, and imported external memory.
struct Holding {
  uint64_t generation;  // Generation of the client in that slot; a holding of another generation counts as 0.
  uint64_t bytes;
};

// Memory that several processes may hold, each through the file DIR/memory/DEVICE.SEGMENT, which contains the
// bytes. The segment lives as long as any process keeps that file open or mapped; FORMAT.md describes how
// this is detected.
struct SegmentHolder {
  uint32_t client;
  uint32_t in_use;
  uint64_t generation;
};
struct Segment {
  uint64_t serial;  // Never used twice on a device; 0 if this entry is free. Stored last on opening.
  uint64_t bytes;   // Bytes that it takes on the device.
  SegmentHolder holders[max_holders];  // Oldest first; the bytes are counted for the oldest that is alive.
};
static_assert(sizeof(Segment) == 128);

enum class Compute : uint32_t { idle, running, switching };

struct CopyEngine {
  int32_t context;  // -1 if free.
  int32_t channel;
  uint64_t end_ns;
  uint32_t last;  // Where round robin continues: context * max_channels + channel.
  uint32_t reserved;
};

struct Engine {
  uint64_t now_ns;  // The schedule has been played up to here.
  Compute compute;
  int32_t owner;  // Context whose kernels may run; -1 before the first one.
  int32_t next_owner;
  uint32_t reserved;
  uint64_t slice_end_ns;
  uint64_t switch_end_ns;
  uint64_t used;     // Bit per context in use.
  uint64_t active;   // Bit per context with operations.
  uint64_t ready;    // Bit per context with a kernel that could run now.
  uint64_t busy_ns;  // Total time with at least one kernel running.
  uint64_t copy_busy_ns;
  uint64_t accounted_ns;
  uint64_t switches;
  uint64_t serial;
  Window window;
  Window copy_window;
  CopyEngine copy[copy_engines];
};

// The data of nvmlDeviceGetProcessUtilization. As measured on an H100 (driver 580.159), each period of 200 ms
// in which a context existed has one sample. A sample names one context, with a probability proportional to
// the time it ran, and has the busy percentage of the whole device.
struct WorkSample {
  uint64_t at_ns;
  uint64_t context_serial;
  uint32_t context;
  uint32_t percent;
};
struct WorkSamples {
  uint64_t next_ns;  // End of the current period.
  uint64_t count;    // Samples recorded so far; number n is stored at samples[n % max_work_samples].
  WorkSample samples[max_work_samples];
};

// The profile's facts of the device. Written once, by carve-sim create.
struct Facts {
  char name[96];
  char profile[32];
  char serial[32];
  char vbios[32];
  uint8_t uuid[16];
  uint32_t index, minor, board_id;
  uint32_t pci_domain, pci_bus, pci_device, pci_device_id, pci_subsystem_id;
  int32_t numa_node;
  uint32_t cc_major, cc_minor;
  uint32_t multiprocessors, cores_per_multiprocessor;
  uint32_t threads_per_multiprocessor, blocks_per_multiprocessor;
  uint32_t registers_per_multiprocessor;
  uint32_t shared_per_multiprocessor, shared_per_block, shared_per_block_optin, shared_reserved_per_block;
  uint32_t clock_khz, memory_clock_khz, memory_bus_bits;
  uint32_t l2_bytes, constant_bytes;
  uint32_t architecture, brand;  // nvmlDeviceArchitecture_t, nvmlBrandType_t
  uint32_t power_limit_mw, power_idle_mw, temperature_idle_c, temperature_busy_c;
  uint32_t ecc, pcie_generation, pcie_width, nvlinks;
  uint64_t native_bytes;    // The value that NVML calls total.
  uint64_t reserved_bytes;  // Kept by the driver; cuDeviceTotalMem reports the rest.
  uint64_t context_bytes;   // Overhead of one context.
  uint64_t unlisted_bytes;  // The part of context_bytes that NVML lists for no process.
  // If not 0, the managed memory of all processes together moves to the device in steps of this size, and
  // NVML lists it for no process. If 0, it moves in blocks, which NVML lists.
  uint64_t managed_step_bytes;
  uint64_t bar1_bytes;
  uint64_t slice_ns, switch_ns;
  uint64_t launch_ns, wave_ns;  // A kernel without a rule takes launch_ns + waves * wave_ns.
  uint64_t copy_latency_ns;
  uint64_t to_device_mbps, to_host_mbps, on_device_mbps;  // 10^6 bytes per second.
  uint8_t link[max_devices];    // nvmlGpuTopologyLevel_t towards device i; 0xff if unknown.
  uint8_t nvlink[max_devices];  // Links towards device i.
};

struct Xid {
  uint64_t serial;
  uint64_t at_ns;
  uint64_t code;
};

// Faults that carve-sim fault injected. Counters count down; 0 means no fault.
struct Faults {
  int64_t out_of_memory;         // The next n allocations fail; -1 means all.
  uint64_t out_of_memory_above;  // Allocations of more bytes than this fail; 0 means no limit.
  uint32_t hang;                 // The next kernel submitted never ends.
  uint32_t lost;                 // The device has fallen off the bus.
  uint32_t mig;                  // The device is in MIG mode.
  uint32_t mps;                  // The device's programs run under an MPS server.
  uint32_t no_accounting;        // The device does not support accounting.
  uint32_t reserved;
  uint64_t slow_nvml_ns;  // Each NVML call about this device takes this long.
  uint64_t xid_serial;    // Number of errors raised so far.
  Xid xids[max_xids];     // Error n at [n % max_xids].
};

// One process in a device's accounts. The client's pid is found through the set (Client::pids).
struct Accounted {
  uint32_t client;
  uint32_t reserved;
  uint64_t generation;
  uint64_t start_ns;  // CLOCK_MONOTONIC
  uint64_t end_ns;    // When its last context was closed; 0 while it has one.
  uint64_t peak_bytes;
};

// NVML's accounting: the most memory that each process held, including ended processes. Off until
// nvmlDeviceSetAccountingMode.
struct Accounting {
  uint32_t on;
  uint32_t reserved;
  uint64_t utc_offset_ns;              // Offset of CLOCK_REALTIME at the start, so that no start time shifts.
  uint64_t running[max_clients / 64];  // Bit per entry of `clients` in use.
  Accounted clients[max_clients];      // By the client's slot.
  uint64_t ended_count;                // Processes ended so far; number n is at ended[n % max_accounted].
  Accounted ended[max_accounted];
};

struct Device {
  uint64_t magic;
  uint32_t version;
  uint32_t reserved;
  uint64_t file_bytes;
  Facts facts;
  alignas(64) pthread_mutex_t lock;  // Robust, shared between processes.
  alignas(64) Faults faults;
  alignas(64) Engine engine;
  WorkSamples work;
  alignas(4096) Context contexts[max_contexts];
  alignas(4096) uint64_t holding[max_clients / 64];  // Bit per client with bytes in `holdings`.
  uint64_t segment_serial;
  uint32_t segment_end;  // No entry at or after this index was ever used.
  alignas(64) Holding holdings[max_clients];
  alignas(4096) Segment segments[max_segments];
  alignas(64) Accounting accounting;
  alignas(4096) Op rings[max_contexts][max_channels][ring_size];
};
static_assert(sizeof(Context) == 4352);
static_assert(offsetof(Device, contexts) % 4096 == 0 && offsetof(Device, contexts) <= 8192);
static_assert(offsetof(Device, rings) % 4096 == 0);

// One process. It holds its slot with a record lock on byte `slot` of the file clients.lock, which the kernel
// drops when the process dies or execs. The holder of the slot writes these fields.
struct Client {
  uint64_t generation;  // Counts the holders of this slot.
  uint64_t token;       // The holder's own random value, because F_GETLK hides a process's own locks.
  char name[64];        // The process's name, for carve-sim show and nvmlSystemGetProcessName.
  // The pid of the holder of generation n is at [n % 4], with the inode of its pid namespace in the upper
  // half.
  uint64_t pids[4];
  uint64_t reserved[2];
};
static_assert(sizeof(Client) == 128);

// The file set.bin, with data common to all devices.
struct SetFile {
  uint64_t magic;
  uint32_t version;
  uint32_t device_count;
  char driver_version[80];
  char nvml_version[80];
  int32_t cuda_version;  // 13000 is 13.0
  uint32_t reserved[3];
  alignas(4096) Client clients[max_clients];
};

}  // namespace carve::sim
