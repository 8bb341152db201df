#include "guest/process/hint.h"

#include <stdlib.h>

namespace carve::guest {

uint64_t limit_hint(unsigned device) {
  char name[] = "CUDA_DEVICE_MEMORY_LIMIT_\0\0";
  constexpr size_t end = sizeof "CUDA_DEVICE_MEMORY_LIMIT_" - 1;
  if (device >= 10) name[end] = static_cast<char>('0' + device / 10 % 10);
  name[device >= 10 ? end + 1 : end] = static_cast<char>('0' + device % 10);
  for (const char* variable : {static_cast<const char*>(name), "CUDA_DEVICE_MEMORY_LIMIT"}) {
    const char* text = getenv(variable);
    if (text == nullptr) continue;
    if (const auto limit = parse_limit(text)) return *limit;
  }
  return UINT64_MAX;
}

}  // namespace carve::guest
