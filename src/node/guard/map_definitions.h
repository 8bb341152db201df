// Definitions of the kernel guard's maps for its BPF programs; guard_maps.h has their keys and values. Only
// guard.bpf.c includes this file. The pinned maps have these names.
#ifndef CARVE_NODE_GUARD_MAP_DEFINITIONS_H
#define CARVE_NODE_GUARD_MAP_DEFINITIONS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "node/guard/guard_maps.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, GUARD_MAX_CGROUPS);
  __type(key, __u64);
  __type(value, __u64);
} members SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, GUARD_MAX_SLICES);
  __type(key, __u64);
  __type(value, struct guard_limits);
} limits SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, GUARD_MAX_SLICES);
  __type(key, __u64);
  __type(value, struct guard_usage);
} usage SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, GUARD_MAX_BLOCKS);
  __type(key, struct guard_block_key);
  __type(value, struct guard_block);
} blocks SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, GUARD_MAX_THREADS);
  __type(key, __u64);
  __type(value, struct guard_reservation);
} reservations SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, GUARD_MAX_THREADS);
  __type(key, __u64);
  __type(value, struct guard_pending);
} pending SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, GUARD_MAX_DEVICES);
  __type(key, __u64);
  __type(value, __u32);
} allocators SEC(".maps");  // The minor number of the device that an allocator serves.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct guard_totals);
} totals SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 65536);
} findings SEC(".maps");

#endif
