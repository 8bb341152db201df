// What CUDA_VISIBLE_DEVICES means inside a slice. A slice is a machine of its own to its programs: device 0
// is the first that was granted, as NVML shows it there. The driver counts the devices of the real machine,
// so while it reads the variable, in the first cuInit, numbers stand there as UUIDs. Afterwards everything is
// as it was.
#pragma once

#include <cstddef>

#include "guest/quota/process.h"

namespace carve::guest {

// `list` with the numbers in it replaced by UUIDs of the slice's devices; it ends where a number names none
// of them, as the driver's own reading would. False where nothing is to be replaced, or `room` does not
// suffice.
bool by_uuid(const shm::Control& control, unsigned device_count, const char* list, char* out, size_t room);

// Holds the variable in those words for as long as it lives.
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
