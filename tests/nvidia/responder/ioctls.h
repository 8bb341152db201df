// Answers the ioctls of NVIDIA's user-space driver as its kernel modules would.
//
// Only the requests listed here are answered. Everything else fails as in the kernel: an unknown ioctl with
// EINVAL, an unknown command with NV_ERR_NOT_SUPPORTED, a bad pointer with EFAULT, a short structure with
// NV_ERR_INVALID_PARAM_STRUCT. With RESPONDER_LOG=FILE a line is appended for each request that fails.
//
// The structures and numbers are those of NVIDIA's open kernel modules (nvos.h, nv-ioctl.h, ctrl/*.h); the
// layouts are stable from driver 470 on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace responder {

// nvstatuscodes.h.
enum Status : uint32_t {
  ok = 0,
  invalid_address = 0x1e,
  invalid_class = 0x22,
  invalid_client = 0x23,
  invalid_device = 0x26,
  invalid_object_handle = 0x33,
  invalid_object_parent = 0x36,
  invalid_param_struct = 0x3a,
  invalid_pointer = 0x3d,
  not_supported = 0x56,
  insufficient_resources = 0x1a,
  insert_duplicate_name = 0x19,
  invalid_argument = 0x1f,
  no_memory = 0x51,
};

// One NV_ESC_RM_CONTROL. `params` is a copy of the caller's structure.
struct Control {
  uint32_t client, object;
  uint32_t command;
  unsigned gpu;  // Index of the object's device.
  uint8_t* params;
  size_t size;
};
Status answer_control(Control& control);

// Answers an ioctl of an opened device file. Returns 0, or a negative errno.
int answer_ioctl(bool is_uvm, unsigned long command, void* argument);

// Like copy_from_user() and copy_to_user(). Return false for memory that the process does not have.
bool copy_in(void* to, const void* user, size_t size);
bool copy_out(void* user, const void* from, size_t size);

}  // namespace responder
