// A program may put anything into the parameters of an ioctl. For any content the guard's rules must return one
// of their verdicts, and a request of the reference form must be read as it was written.
//
// An input has the ioctl's number (4 bytes) and the content of the program's memory from address 4096 on.
#include <cstdlib>
#include <cstring>

#include "node/guard/testing/program_memory.h"
// The rules read through guard_read_program(), which program_memory.h defines.
#include "node/guard/budget_rules.h"
#include "node/guard/ioctl_rules.h"

using carve::node::ProgramMemory;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t at = 4096;
  if (size < 4 || size > 16384) return 0;
  uint32_t number = 0;
  std::memcpy(&number, data, 4);
  ProgramMemory memory;
  memory.put(at, data + 4, size - 4);
  ProgramMemory::current = &memory;
  const guard_request read = guard_read_request(number, at);
  if (read.verdict > GUARD_UNREADABLE) std::abort();
  if (read.verdict != GUARD_ALLOCATES) return 0;
  // A budget never commits more than its limit, whatever was requested.
  guard_limits limits{.parts = 1};
  limits.part[0] = {0, 0, 1 << 30, 1 << 30};
  guard_usage usage{};
  __u64 reserved = 0;
  const bool is_admitted = guard_admit(&limits, &usage, read.bytes, &reserved) != 0;
  if (is_admitted != (read.bytes <= limits.part[0].bytes)) std::abort();
  if (usage.part[0].committed > limits.part[0].bytes || usage.part[0].committed != reserved) std::abort();
  guard_release(&usage.part[0].committed, reserved);
  if (usage.part[0].committed != 0) std::abort();
  return 0;
}
