// The kernel guard's programs. They run in the kernel at each ioctl on a device node of NVIDIA's driver, at
// each allocation of device memory, and when a process of a slice opens a device node. A process that is in no
// slice passes after one comparison (another device) or one look-up of its cgroup (NVIDIA's).
//
// The order for one allocation: check_ioctl() refuses or reserves, allocation_begins() and allocation_ends()
// count the pages, ioctl_ends() drops the rest of the reservation. memory_is_freed() releases the charge,
// whichever process frees.
//
// The programs read no structure of NVIDIA's module, because a module built on the machine has no BTF. They
// depend on two of its functions, pmaAllocatePages and pmaFreePages (phys_mem_allocator.h), whose arguments
// are in registers.
#include <linux/bpf.h>

#include <asm/ptrace.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "node/guard/budget_rules.h"
#include "node/guard/map_definitions.h"

static inline __attribute__((always_inline)) long guard_read_program(void* to, __u32 bytes, __u64 from) {
  return bpf_probe_read_user(to, bytes, (const void*)from);
}
#include "node/guard/ioctl_rules.h"

// Helpers such as bpf_probe_read_kernel() are available only to programs under a license that is compatible
// with the GPL.
char guard_license[] SEC("license") = "Dual BSD/GPL";

enum {
  no_permission = -1,  // EPERM
  no_memory = -12,     // ENOMEM
  max_errno = 4095,
  max_level = 16,  // A slice's cgroup is at most this deep in the tree.
  kill_signal = 9,
};

// PMA_ALLOCATION_OPTIONS: flags, and the number of pages of a partial allocation.
enum { pinned = 1 << 1, contiguous = 1 << 6, may_be_partial = 1 << 12, partial_count_at = 40 };
#define GRANULE 65536ull  // The allocator's smallest page.

// The fields that are read of the kernel's structures; the loader finds their offsets in the kernel's BTF.
struct inode {
  unsigned short i_mode;
  unsigned int i_rdev;
} __attribute__((preserve_access_index));
struct file {
  struct inode* f_inode;
} __attribute__((preserve_access_index));

// Returns the id of the current process's slice, or 0.
static __always_inline __u64 slice_of_current(void) {
  __u64 cgroup = bpf_get_current_cgroup_id();
  const __u64* slice = bpf_map_lookup_elem(&members, &cgroup);
  if (slice) return *slice;
  for (int level = 1; level < max_level; ++level) {
    cgroup = bpf_get_current_ancestor_cgroup_id(level);
    if (cgroup == 0) return 0;
    slice = bpf_map_lookup_elem(&members, &cgroup);
    if (slice) return *slice;
  }
  return 0;
}

static __always_inline void add_open(__s64 change) {
  const __u32 zero = 0;
  struct guard_totals* all = bpf_map_lookup_elem(&totals, &zero);
  if (all) __sync_fetch_and_add(&all->open, change);
}

static __always_inline void report(__u32 kind, __u64 slice, __u32 part, __u64 used, __u64 limit) {
  struct guard_finding* finding = bpf_ringbuf_reserve(&findings, sizeof *finding, 0);
  if (!finding) return;  // The flag in `usage` remains, and the agent reads it too.
  finding->kind = kind;
  finding->slice = slice;
  finding->part = part;
  finding->used = used;
  finding->limit = limit;
  finding->pid = bpf_get_current_pid_tgid() >> 32;
  finding->reserved = 0;
  bpf_ringbuf_submit(finding, 0);
}

static __always_inline void count_lost(__u64 slice, struct guard_usage* used) {
  __sync_fetch_and_add(&used->uncounted, 1);
  report(GUARD_UNCOUNTED, slice, 0, 0, 0);
}

// Drops what is left of the thread's reservation.
static __always_inline void end_reservation(__u64 thread) {
  const struct guard_reservation* held = bpf_map_lookup_elem(&reservations, &thread);
  if (!held) return;
  struct guard_usage* used = bpf_map_lookup_elem(&usage, &held->slice);
  if (used) guard_release(&used->part[0].committed, held->left);
  if (bpf_map_delete_elem(&reservations, &thread) == 0) add_open(-1);
}

// If the thread began an allocation whose end was not seen, its pages were not recorded.
static __always_inline void end_pending(__u64 thread) {
  const struct guard_pending* begun = bpf_map_lookup_elem(&pending, &thread);
  if (!begun) return;
  const __u64 slice = begun->slice;
  struct guard_usage* used = bpf_map_lookup_elem(&usage, &slice);
  if (bpf_map_delete_elem(&pending, &thread) == 0) add_open(-1);
  if (used) count_lost(slice, used);
}

static __always_inline int admit(__u64 slice, const struct guard_limits* limit, struct guard_usage* used,
                                 __u64 wanted) {
  const __u64 thread = bpf_get_current_pid_tgid();
  end_reservation(thread);  // Exists only if the end of the thread's last ioctl was missed.
  __u64 reserved = 0;
  if (!guard_admit(limit, used, wanted, &reserved)) {
    __sync_fetch_and_add(&used->refused, 1);
    return no_memory;
  }
  if (reserved == 0) return 0;
  const struct guard_reservation held = {.slice = slice, .left = reserved};
  if (bpf_map_update_elem(&reservations, &thread, &held, BPF_ANY) != 0) {
    guard_release(&used->part[0].committed, reserved);
    __sync_fetch_and_add(&used->refused, 1);
    return no_memory;
  }
  add_open(1);
  return 0;
}

static __always_inline int check_ioctl(struct file* file, __u32 command, __u64 argument) {
  const __u32 device = file->f_inode->i_rdev;  // MAJOR << 20 | MINOR
  if (device >> 20 != GUARD_NVIDIA_MAJOR) return 0;
  if ((file->f_inode->i_mode & 0170000) != 0020000) return 0;
  __u64 slice = slice_of_current();
  if (slice == 0) return 0;
  const struct guard_limits* limit = bpf_map_lookup_elem(&limits, &slice);
  struct guard_usage* used = bpf_map_lookup_elem(&usage, &slice);
  if (!limit || !used) return no_permission;
  if (used->beyond != 0) return no_memory;
  if (!guard_may_open(limit, device & 0xfffff)) {
    __sync_fetch_and_add(&used->denied, 1);
    return no_permission;
  }
  const struct guard_request asked = guard_read_request(command, argument);
  switch (asked.verdict) {
    case GUARD_ALLOCATES: return admit(slice, limit, used, asked.bytes);
    case GUARD_DENIED: __sync_fetch_and_add(&used->denied, 1); return no_permission;
    case GUARD_UNREADABLE: __sync_fetch_and_add(&used->unparsed, 1); return 0;
    default: return 0;
  }
}

// `before` is the result of the programs and modules that were called before.
static __always_inline int check(struct file* file, __u32 command, __u64 argument, int before) {
  if (before < 0 && before >= -max_errno) return before;
  return check_ioctl(file, command, argument);
}

// Each hook as a program of the security module `bpf`, and as one that changes a return value, for kernels
// that start without that module (lsm=). The loader attaches one of the two forms.
SEC("lsm/file_ioctl")
int BPF_PROG(lsm_ioctl, struct file* file, unsigned int command, unsigned long argument, int before) {
  return check(file, command, argument, before);
}
SEC("lsm/file_ioctl_compat")
int BPF_PROG(lsm_ioctl_compat, struct file* file, unsigned int command, unsigned long argument, int before) {
  return check(file, command, argument, before);
}
SEC("fmod_ret/security_file_ioctl")
int BPF_PROG(fmod_ioctl, struct file* file, unsigned int command, unsigned long argument, int before) {
  return check(file, command, argument, before);
}
SEC("fmod_ret/security_file_ioctl_compat")
int BPF_PROG(fmod_ioctl_compat, struct file* file, unsigned int command, unsigned long argument, int before) {
  return check(file, command, argument, before);
}

static __always_inline int end_ioctl(void) {
  const __u32 zero = 0;
  const struct guard_totals* all = bpf_map_lookup_elem(&totals, &zero);
  if (!all || all->open == 0) return 0;
  const __u64 thread = bpf_get_current_pid_tgid();
  end_reservation(thread);
  end_pending(thread);
  return 0;
}
SEC("fexit/__x64_sys_ioctl")
int BPF_PROG(ioctl_ends) { return end_ioctl(); }
SEC("fexit/__ia32_compat_sys_ioctl")
int BPF_PROG(ioctl_ends_compat) { return end_ioctl(); }

SEC("kprobe/pmaAllocatePages")
int allocation_begins(struct pt_regs* registers) {
  const __u64 slice = slice_of_current();
  if (slice == 0) return 0;
  const __u64 thread = bpf_get_current_pid_tgid();
  end_pending(thread);
  __u32 flags = pinned;
  struct guard_pending begun = {
      .slice = slice,
      .allocator = PT_REGS_PARM1(registers),
      .count = PT_REGS_PARM2(registers),
      .page_bytes = PT_REGS_PARM3(registers),
      .options = PT_REGS_PARM4(registers),
      .pages = PT_REGS_PARM5(registers),
  };
  bpf_probe_read_kernel(&flags, sizeof flags, (const void*)begun.options);
  if (!(flags & pinned)) begun.count = 0;  // The driver can evict these pages.
  if (bpf_map_update_elem(&pending, &thread, &begun, BPF_ANY) == 0) {
    add_open(1);
    return 0;
  }
  struct guard_usage* used = bpf_map_lookup_elem(&usage, &slice);
  if (used) count_lost(slice, used);
  return 0;
}

struct recording {
  __u64 allocator, pages, slice, bytes;
  __u32 part, failed;
};
static long record_block(__u32 index, struct recording* all) {
  struct guard_block_key key = {.allocator = all->allocator};
  const struct guard_block block = {.slice = all->slice, .bytes = all->bytes, .part = all->part};
  if (bpf_probe_read_kernel(&key.address, sizeof key.address, (const void*)(all->pages + 8ull * index)) !=
          0 ||
      bpf_map_update_elem(&blocks, &key, &block, BPF_ANY) != 0)
    all->failed = 1;
  return 0;
}

// Counts bytes of one part. Returns whether the part is now beyond its fatal limit.
static __always_inline void count(__u64 slice, const struct guard_limits* limit, struct guard_usage* used,
                                  __u32 part, __u64 bytes) {
  if (part >= GUARD_MAX_PARTS) return;
  __u64 left = 0;
  const __u64 thread = bpf_get_current_pid_tgid();
  struct guard_reservation* held = bpf_map_lookup_elem(&reservations, &thread);
  if (held && held->slice == slice && part == 0) {
    left = held->left;
    held->left -= bytes < left ? bytes : left;
  }
  const __u64 now = guard_allocate(&used->part[part], &left, bytes);
  if (now <= limit->part[part].fatal) return;
  used->beyond = part + 1;
  report(GUARD_BEYOND, slice, part, now, limit->part[part].fatal);
  bpf_send_signal(kill_signal);
}

// Returns the part to which memory of this allocator is charged.
static __always_inline __u32 part_of(const struct guard_limits* limit, __u64 allocator) {
  if (limit->is_probe) {
    const __u32 minor = limit->part[0].minor;
    bpf_map_update_elem(&allocators, &allocator, &minor, BPF_ANY);
    return 0;
  }
  if (limit->parts == 1) return 0;  // It can open no other device.
  const __u32* minor = bpf_map_lookup_elem(&allocators, &allocator);
  return minor ? guard_part_on(limit, *minor) : GUARD_ALL_PARTS;
}

static __always_inline void count_allocation(struct guard_pending* done) {
  const __u64 slice = done->slice;
  const struct guard_limits* limit = bpf_map_lookup_elem(&limits, &slice);
  struct guard_usage* used = bpf_map_lookup_elem(&usage, &slice);
  if (!limit || !used) return;
  __u32 flags = 0;
  bpf_probe_read_kernel(&flags, sizeof flags, (const void*)done->options);
  if (flags & may_be_partial)
    bpf_probe_read_kernel(&done->count, sizeof done->count, (const void*)(done->options + partial_count_at));
  const __u64 bytes = done->count * done->page_bytes;
  const __u32 part = part_of(limit, done->allocator);
  struct recording all = {.allocator = done->allocator,
                          .pages = done->pages,
                          .slice = slice,
                          .bytes = done->page_bytes,
                          .part = part};
  if (flags & contiguous) {
    all.bytes = bytes;
    record_block(0, &all);
  } else if (bpf_loop(done->count, record_block, &all, 0) != (long)done->count) {
    all.failed = 1;
  }
  if (all.failed) count_lost(slice, used);
  if (part != GUARD_ALL_PARTS) return count(slice, limit, used, part, bytes);
  for (__u32 i = 0; i < GUARD_MAX_PARTS; ++i)
    if (i < limit->parts) count(slice, limit, used, i, bytes);
}

SEC("kretprobe/pmaAllocatePages")
int allocation_ends(struct pt_regs* registers) {
  const __u64 thread = bpf_get_current_pid_tgid();
  const struct guard_pending* begun = bpf_map_lookup_elem(&pending, &thread);
  if (!begun) {
    const __u64 slice = slice_of_current();
    struct guard_usage* used = slice ? bpf_map_lookup_elem(&usage, &slice) : 0;
    if (used) count_lost(slice, used);  // The beginning was missed.
    return 0;
  }
  struct guard_pending done = *begun;
  if (bpf_map_delete_elem(&pending, &thread) == 0) add_open(-1);
  if ((__u32)PT_REGS_RC(registers) == 0 && done.count != 0) count_allocation(&done);
  return 0;
}

struct freeing {
  __u64 allocator, pages, page_bytes;  // Pages of one size, at these addresses...
  __u64 address, left;                 // ... or a range.
};

// Releases the block at the address, at most `bytes` of it. Returns the released bytes; 0 if no slice has the
// block.
static __always_inline __u64 free_block(__u64 allocator, __u64 address, __u64 bytes) {
  struct guard_block_key key = {.allocator = allocator, .address = address};
  const struct guard_block* known = bpf_map_lookup_elem(&blocks, &key);
  if (!known) return 0;
  struct guard_block block = *known;
  const __u64 freed = bytes < block.bytes ? bytes : block.bytes;
  bpf_map_delete_elem(&blocks, &key);
  struct guard_usage* used = bpf_map_lookup_elem(&usage, &block.slice);
  if (block.bytes > freed) {
    block.bytes -= freed;
    key.address += freed;
    if (bpf_map_update_elem(&blocks, &key, &block, BPF_ANY) != 0 && used) count_lost(block.slice, used);
  }
  if (!used) return freed;
  if (block.part < GUARD_MAX_PARTS) {
    guard_free(&used->part[block.part], freed);
    return freed;
  }
  for (int i = 0; i < GUARD_MAX_PARTS; ++i) guard_free(&used->part[i], freed);
  return freed;
}
static long free_page(__u32 index, struct freeing* all) {
  __u64 address = 0;
  if (bpf_probe_read_kernel(&address, sizeof address, (const void*)(all->pages + 8ull * index)) == 0)
    free_block(all->allocator, address, all->page_bytes);
  return 0;
}
static long free_range(__u32 index, struct freeing* all) {
  (void)index;
  if (all->left == 0) return 1;
  const __u64 freed = free_block(all->allocator, all->address, all->left);
  if (freed == 0) return 1;
  all->address += freed;
  all->left -= freed;
  return 0;
}

SEC("kprobe/pmaFreePages")
int memory_is_freed(struct pt_regs* registers) {
  struct freeing all = {.allocator = PT_REGS_PARM1(registers), .pages = PT_REGS_PARM2(registers)};
  const __u64 count_of_pages = PT_REGS_PARM3(registers);
  const __u64 bytes = PT_REGS_PARM4(registers);
  if (count_of_pages != 1) {
    all.page_bytes = bytes;
    bpf_loop(count_of_pages, free_page, &all, 0);
    return 0;
  }
  // One contiguous block of this size.
  all.left = (bytes + GRANULE - 1) & ~(GRANULE - 1);
  if (bpf_probe_read_kernel(&all.address, sizeof all.address, (const void*)all.pages) == 0)
    bpf_loop(GUARD_MAX_BLOCKS, free_range, &all, 0);
  return 0;
}

// A slice opens only its own devices and the control node. Other drivers' devices are left to other rules.
SEC("cgroup/dev")
int device_rule(struct bpf_cgroup_dev_ctx* asked) {
  if ((asked->access_type & 0xffff) != BPF_DEVCG_DEV_CHAR || asked->major != GUARD_NVIDIA_MAJOR) return 1;
  const __u64 slice = slice_of_current();
  if (slice == 0) return 1;
  const struct guard_limits* limit = bpf_map_lookup_elem(&limits, &slice);
  return limit && guard_may_open(limit, asked->minor);
}
