// Reads what a program requests from NVIDIA's kernel driver, and decides whether a slice may request it.
// Shared by the BPF programs (C) and the unit tests (C++). Numbers and offsets are from nvos.h,
// nv-ioctl-numbers.h and nv_escape.h of the open kernel modules 535 to 595, where they are the same.
//
// The parameters are in the program's memory, which it may change after this check. Therefore the check only
// refuses early; the pages are counted when the driver allocates them.
#ifndef CARVE_NODE_GUARD_IOCTL_RULES_H
#define CARVE_NODE_GUARD_IOCTL_RULES_H

#include <linux/types.h>

#include "node/guard/ioctl_numbers.h"

// Copies bytes from the program's memory. Returns 0, or a negative number if they are not in memory. The file
// that includes this header defines it.
static inline __attribute__((always_inline)) long guard_read_program(void* to, __u32 bytes, __u64 from);

enum guard_verdict {
  GUARD_PASS = 0,        // Not a request for memory.
  GUARD_ALLOCATES = 1,   // Requests `bytes` of video memory.
  GUARD_DENIED = 2,      // Never allowed in a slice.
  GUARD_UNREADABLE = 3,  // The parameters are not in memory.
};

struct guard_request {
  __u32 verdict;  // enum guard_verdict
  __u32 reserved;
  __u64 bytes;
};

struct guard_command {
  __u32 number;
  __u32 bytes;  // Size of the parameters.
  __u64 parameters;
};

#define GUARD_SERIALIZED 1u        // NVOS64_FLAGS_FINN_SERIALIZED
#define GUARD_VIRTUAL 0x00080000u  // NVOS32_ALLOC_FLAGS_VIRTUAL
#define GUARD_LOCATION(attr) ((attr) >> 25 & 3)
#define GUARD_LOCATION_PCI 1u  // Host memory. 0 and 3 are or may be video memory.

static inline __attribute__((always_inline)) struct guard_request guard_result(__u32 verdict, __u64 bytes) {
  struct guard_request out = {verdict, 0, bytes};
  return out;
}

static inline __attribute__((always_inline)) struct guard_request guard_memory_class(__u32 class_number,
                                                                                     __u64 bytes) {
  if (class_number == GUARD_MEMORY_LOCAL_PHYSICAL) return guard_result(GUARD_DENIED, 0);
  if (class_number != GUARD_MEMORY_LOCAL_USER) return guard_result(GUARD_PASS, 0);
  return guard_result(GUARD_ALLOCATES, bytes);
}

// NVOS21 (32 bytes) or NVOS64 (48 bytes).
static inline __attribute__((always_inline)) struct guard_request guard_read_alloc(
    const struct guard_command* command) {
  struct {
    __u32 root, parent, object, class_number;
    __u64 parameters, rights;
    __u32 parameter_bytes, flags;
  } asked;
  if (command->bytes != 32 && command->bytes != 48) return guard_result(GUARD_PASS, 0);
  asked.rights = 0;
  asked.parameter_bytes = asked.flags = 0;
  if (command->bytes == 48) {
    if (guard_read_program(&asked, 40, command->parameters) != 0) return guard_result(GUARD_UNREADABLE, 0);
    if (asked.flags & GUARD_SERIALIZED) return guard_result(GUARD_DENIED, 0);
  } else if (guard_read_program(&asked, 24, command->parameters) != 0) {
    return guard_result(GUARD_UNREADABLE, 0);
  }
  const struct guard_request kind = guard_memory_class(asked.class_number, 0);
  if (kind.verdict != GUARD_ALLOCATES) return kind;
  __u64 bytes = 0;  // NV_MEMORY_ALLOCATION_PARAMS.size
  if (guard_read_program(&bytes, 8, asked.parameters + 64) != 0) return guard_result(GUARD_UNREADABLE, 0);
  return guard_result(GUARD_ALLOCATES, bytes);
}

// NVOS02 (48 bytes), alone or with a descriptor (56 bytes).
static inline __attribute__((always_inline)) struct guard_request guard_read_alloc_memory(
    const struct guard_command* command) {
  struct {
    __u32 root, parent, object, class_number, flags, pad;
    __u64 memory, limit;
  } asked;
  if (guard_read_program(&asked, sizeof asked, command->parameters) != 0)
    return guard_result(GUARD_UNREADABLE, 0);
  return guard_memory_class(asked.class_number, asked.limit == ~0ull ? asked.limit : asked.limit + 1);
}

// NVOS32: the functions ALLOC_SIZE and ALLOC_SIZE_RANGE.
static inline __attribute__((always_inline)) struct guard_request guard_read_heap(
    const struct guard_command* command) {
  __u32 function = 0;
  if (guard_read_program(&function, 4, command->parameters + 8) != 0)
    return guard_result(GUARD_UNREADABLE, 0);
  if (function != 2 && function != 14) return guard_result(GUARD_PASS, 0);
  struct {
    __u32 owner, memory, type, flags, attr, format, compression, depth, stride, width, height, pad;
    __u64 bytes;
  } asked;
  if (guard_read_program(&asked, sizeof asked, command->parameters + 40) != 0)
    return guard_result(GUARD_UNREADABLE, 0);
  if (asked.flags & GUARD_VIRTUAL || GUARD_LOCATION(asked.attr) == GUARD_LOCATION_PCI)
    return guard_result(GUARD_PASS, 0);
  return guard_result(GUARD_ALLOCATES, asked.bytes);
}

// NVOS54.
static inline __attribute__((always_inline)) struct guard_request guard_read_control(
    const struct guard_command* command) {
  __u32 control = 0;
  if (guard_read_program(&control, 4, command->parameters + 8) != 0) return guard_result(GUARD_UNREADABLE, 0);
  const int is_denied = control == GUARD_SET_TIMESLICE || control == GUARD_PREEMPT ||
                        control == GUARD_SET_INTERLEAVE_LEVEL || control == GUARD_DISABLE_CHANNELS;
  return guard_result(is_denied ? GUARD_DENIED : GUARD_PASS, 0);
}

// Returns what the ioctl `command` with the argument `argument` requests.
static inline __attribute__((always_inline)) struct guard_request guard_read_request(__u32 command,
                                                                                     __u64 argument) {
  struct guard_command asked = {command & 0xff, command >> 16 & 0x3fff, argument};
  if (asked.number == GUARD_TRANSFER) {
    struct {
      __u32 number, bytes;
      __u64 parameters;
    } inner;
    if (guard_read_program(&inner, sizeof inner, argument) != 0) return guard_result(GUARD_UNREADABLE, 0);
    asked.number = inner.number;
    asked.bytes = inner.bytes;
    asked.parameters = inner.parameters;
  }
  switch (asked.number) {
    case GUARD_RM_ALLOC: return guard_read_alloc(&asked);
    case GUARD_RM_ALLOC_MEMORY: return guard_read_alloc_memory(&asked);
    case GUARD_VID_HEAP_CONTROL: return guard_read_heap(&asked);
    case GUARD_RM_CONTROL: return guard_read_control(&asked);
    default: return guard_result(GUARD_PASS, 0);
  }
}

#endif
