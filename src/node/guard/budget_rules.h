// Arithmetic of a slice's budget on one device, shared by the BPF programs (C) and the unit tests (C++). The
// words are changed by several processors at the same time; `committed` is never above the limit through
// guard_reserve().
#ifndef CARVE_NODE_GUARD_BUDGET_RULES_H
#define CARVE_NODE_GUARD_BUDGET_RULES_H

#include "node/guard/guard_maps.h"

// Attempts to exchange `committed` before the request is refused as contended.
#define GUARD_RESERVE_ATTEMPTS 64

static inline __attribute__((always_inline)) __u64 guard_load(const __u64* word) {
#ifdef __BPF__
  return *(const volatile __u64*)word;  // Clang 16 has no atomic load for BPF; a load of 8 bytes is atomic.
#else
  return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

// Returns whether `wanted` more bytes fit. Does not overflow for any argument.
static inline __attribute__((always_inline)) int guard_fits(__u64 committed, __u64 wanted, __u64 limit) {
  return committed <= limit && wanted <= limit - committed;
}

// Adds `wanted` to `committed` if it fits. Returns whether it did.
static inline __attribute__((always_inline)) int guard_reserve(__u64* committed, __u64 wanted, __u64 limit) {
  __u64 seen = guard_load(committed);
  for (int i = 0; i < GUARD_RESERVE_ATTEMPTS; ++i) {
    if (!guard_fits(seen, wanted, limit)) return 0;
    const __u64 before = __sync_val_compare_and_swap(committed, seen, seen + wanted);
    if (before == seen) return 1;
    seen = before;
  }
  return 0;
}

// Subtracts at most what the word holds, so that it does not wrap around even if something was released twice.
// Without a loop, because the verifier of Linux 6.12 limits the number of jumps.
static inline __attribute__((always_inline)) void guard_release(__u64* word, __u64 bytes) {
  const __u64 before = __sync_fetch_and_add(word, -bytes);
  if (before < bytes) __sync_fetch_and_add(word, bytes - before);
}

// Counts allocated bytes. Bytes that the thread has reserved are in `committed` already. Returns `used`.
static inline __attribute__((always_inline)) __u64 guard_allocate(struct guard_part_usage* part,
                                                                  __u64* reserved_left, __u64 bytes) {
  const __u64 covered = bytes < *reserved_left ? bytes : *reserved_left;
  *reserved_left -= covered;
  if (bytes > covered) __sync_fetch_and_add(&part->committed, bytes - covered);
  const __u64 used = __sync_fetch_and_add(&part->used, bytes) + bytes;
  if (used > part->peak) part->peak = used;  // Not atomic: a figure for display.
  return used;
}

// Decides about a request for `wanted` bytes. If the slice has one part, reserves them and sets `reserved`.
// With several parts the request does not show its device, so it is refused only if it fits on none of them.
// Returns whether the request is allowed.
static inline __attribute__((always_inline)) int guard_admit(const struct guard_limits* limits,
                                                             struct guard_usage* usage, __u64 wanted,
                                                             __u64* reserved) {
  *reserved = 0;
  if (usage->beyond != 0 || usage->uncounted != 0) return 0;
  if (limits->parts == 1) {
    if (!guard_reserve(&usage->part[0].committed, wanted, limits->part[0].bytes)) return 0;
    *reserved = wanted;
    return 1;
  }
  for (int i = 0; i < GUARD_MAX_PARTS; ++i)
    if (i < (int)limits->parts &&
        guard_fits(guard_load(&usage->part[i].committed), wanted, limits->part[i].bytes))
      return 1;
  return 0;
}

// Returns whether a slice may use the device node of NVIDIA's driver with this minor number.
static inline __attribute__((always_inline)) int guard_may_open(const struct guard_limits* limits,
                                                                __u32 minor) {
  if (minor == GUARD_CONTROL_MINOR) return 1;
  for (int i = 0; i < GUARD_MAX_PARTS; ++i)
    if (i < (int)limits->parts && limits->part[i].minor == minor) return 1;
  return 0;
}

// Returns the position of the part on the device, or GUARD_ALL_PARTS if the slice has none there.
#define GUARD_ALL_PARTS 0xffffffffu
static inline __attribute__((always_inline)) __u32 guard_part_on(const struct guard_limits* limits,
                                                                 __u32 minor) {
  for (__u32 i = 0; i < GUARD_MAX_PARTS; ++i)
    if (i < limits->parts && limits->part[i].minor == minor) return i;
  return GUARD_ALL_PARTS;
}

// Counts freed bytes.
static inline __attribute__((always_inline)) void guard_free(struct guard_part_usage* part, __u64 bytes) {
  guard_release(&part->used, bytes);
  guard_release(&part->committed, bytes);
}

#endif
