// Numbers of NVIDIA's kernel interface that the kernel guard handles, from nv_escape.h, nv-ioctl-numbers.h and
// the class and control headers of the open kernel modules 535 to 595. Included by the BPF programs (C).
#ifndef CARVE_NODE_GUARD_IOCTL_NUMBERS_H
#define CARVE_NODE_GUARD_IOCTL_NUMBERS_H

enum guard_escape {
  GUARD_RM_ALLOC_MEMORY = 0x27,
  GUARD_RM_CONTROL = 0x2a,
  GUARD_RM_ALLOC = 0x2b,
  GUARD_VID_HEAP_CONTROL = 0x4a,
  GUARD_TRANSFER =
      211,  // Contains another command, for parameters larger than an ioctl's number can express.
};

enum guard_class {
  GUARD_MEMORY_LOCAL_USER = 0x40,      // Video memory.
  GUARD_MEMORY_LOCAL_PHYSICAL = 0xc2,  // Any physical address of video memory.
};

// Controls with which a program would change how the device shares its time between programs.
enum guard_control {
  GUARD_SET_TIMESLICE = 0xa06c0103,
  GUARD_PREEMPT = 0xa06c0105,
  GUARD_SET_INTERLEAVE_LEVEL = 0xa06c0107,
  GUARD_DISABLE_CHANNELS = 0x2080110b,
};

#endif
