// CUDA_VISIBLE_DEVICES inside a slice. To its programs, a slice looks like a machine of its own: device 0 is
// the first granted device, as in the NVML hooks, and no other device exists. But the driver counts the
// devices of the real machine. So while the driver reads the variable, in the first cuInit, the variable
// lists by UUID the devices that the program may see, whether or not the program set it. Afterwards the
// variable has its old value again.
//
// The driver must not enumerate more devices than the hooks show: the CUDA runtime compares the two lists and fails
// with error 103 (tests/nvidia/test_visible.py).
#pragma once

#include <cstddef>

#include "guest/process/process_page.h"

namespace carve::guest {

// Writes the UUIDs of the slice's devices that `list` names, in the order of `list`, or of all the slice's
// devices if `list` is null. If the list names a device twice, the output does too, and the driver rejects it
// as it would have rejected the list. Returns false if the output is too small.
bool by_uuid(const shm::Control& control, unsigned device_count, const char* list, char* out, size_t room);

// Sets the variable to that list of UUIDs while the object exists.
class VisibleByUuid {
 public:
  explicit VisibleByUuid(const Process& process);
  VisibleByUuid(const VisibleByUuid&) = delete;
  VisibleByUuid& operator=(const VisibleByUuid&) = delete;
  ~VisibleByUuid();

 private:
  bool is_changed_ = false;
  char* before_ = nullptr;  // The variable's entry in the environment, or null if it was not set.
};

}  // namespace carve::guest
