// The meaning of CUDA_VISIBLE_DEVICES inside a slice. For its programs a slice is a machine of its own:
// device 0 is the first that was granted, as NVML shows it there. But the driver counts the devices of the
// real machine. So while the driver reads the variable, in the first cuInit, its numbers are replaced by
// UUIDs. Afterwards the variable is as before.
#pragma once

#include <cstddef>

#include "guest/process/process_page.h"

namespace carve::guest {

// Writes `list` with its numbers replaced by UUIDs of the slice's devices. The output ends at a number that
// names none of them, as the driver's own parsing would. Returns false if no replacement is needed, or if
// `room` is too small.
bool by_uuid(const shm::Control& control, unsigned device_count, const char* list, char* out, size_t room);

// Holds the variable in that form during its lifetime.
class VisibleByUuid {
 public:
  explicit VisibleByUuid(const Process& process);
  VisibleByUuid(const VisibleByUuid&) = delete;
  VisibleByUuid& operator=(const VisibleByUuid&) = delete;
  ~VisibleByUuid();

 private:
  char** place_ = nullptr;  // In the environment.
  char* before_ = nullptr;
};

}  // namespace carve::guest
