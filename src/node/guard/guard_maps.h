// The contents of the kernel guard's maps, shared by its BPF programs (C) and the agent (C++). The maps are
// pinned and outlive the agent, so a change of a layout needs a new `guard_layout`.
#ifndef CARVE_NODE_GUARD_MAPS_H
#define CARVE_NODE_GUARD_MAPS_H

#include <linux/types.h>

// Part of the directory's name in bpffs. An agent adopts only programs and maps of its own layout.
#define GUARD_LAYOUT 1

#define GUARD_MAX_PARTS 16
#define GUARD_MAX_SLICES 1024
#define GUARD_MAX_CGROUPS 4096
#define GUARD_MAX_THREADS 16384     // Threads inside an ioctl or an allocation at the same time.
#define GUARD_MAX_BLOCKS (1 << 20)  // Allocated blocks: 64 GiB in pages of 64 KiB, 2 TiB in pages of 2 MiB.
#define GUARD_MAX_DEVICES 64        // Page allocators (PMA) of the driver.

#define GUARD_NVIDIA_MAJOR 195
#define GUARD_CONTROL_MINOR 255  // /dev/nvidiactl

// Key of the map `members`: the id of a cgroup v2. Value: the slice's id.

// Value of the map `limits`, by the slice's id. Written by the agent.
struct guard_limit {
  __u32 minor;     // N of /dev/nvidiaN.
  __u32 reserved;  // 0
  __u64 bytes;     // Beyond this, requests are refused.
  __u64 fatal;     // Beyond this, the slice is killed; bytes.
};
struct guard_limits {
  __u32 parts;
  __u32 is_probe;  // The self-test: its first allocation teaches which page allocator serves its device.
  struct guard_limit part[GUARD_MAX_PARTS];
};

// Value of the map `usage`, by the slice's id. Written by the programs.
struct guard_part_usage {
  __u64 committed;  // Allocated and reserved bytes.
  __u64 used;       // Allocated bytes.
  __u64 peak;       // Maximum of `used`.
};
struct guard_usage {
  __u64 refused;    // Requests that were refused because of a limit.
  __u64 denied;     // Requests that are never allowed in a slice.
  __u64 uncounted;  // Allocations that could not be recorded; further requests are refused.
  __u64 beyond;     // Position of the part that exceeded its fatal limit, plus 1. 0 if none did.
  __u64 unparsed;   // Requests whose parameters were not in memory, so only their pages were counted.
  struct guard_part_usage part[GUARD_MAX_PARTS];
};

// Key and value of the map `blocks`: allocated device memory.
struct guard_block_key {
  __u64 allocator;  // Address of the driver's page allocator.
  __u64 address;    // Address of the block in the device's memory.
};
struct guard_block {
  __u64 slice;
  __u64 bytes;
  __u32 part;      // Or GUARD_ALL_PARTS, if its device is unknown.
  __u32 reserved;  // 0
};

// Value of the map `reservations`, by thread: what one ioctl may still allocate.
struct guard_reservation {
  __u64 slice;
  __u64 left;  // Bytes.
  __u32 part;
  __u32 reserved;  // 0
};

// Value of the map `pending`, by thread: an allocation of pages that has begun.
struct guard_pending {
  __u64 slice;
  __u64 allocator;
  __u64 pages;    // Address of the array of page addresses, in the kernel.
  __u64 options;  // Address of the options, in the kernel.
  __u64 count;
  __u64 page_bytes;
};

// A record of the ring buffer `findings`.
enum guard_finding_kind {
  GUARD_BEYOND = 1,     // `used` exceeds the fatal limit.
  GUARD_UNCOUNTED = 2,  // An allocation could not be recorded.
};
struct guard_finding {
  __u64 slice;
  __u64 used;   // Bytes.
  __u64 limit;  // Bytes.
  __u32 part;
  __u32 kind;      // enum guard_finding_kind
  __u32 pid;       // Thread group.
  __u32 reserved;  // 0
};

// Counters of the whole guard, in the only element of the map `totals`.
struct guard_totals {
  __u64 open;  // Elements of `reservations` and `pending`. If 0, the end of an ioctl needs no look-up.
  __u64
      driver;  // Identifies the driver's loaded module. Written by the agent before the programs are attached.
};

#endif
