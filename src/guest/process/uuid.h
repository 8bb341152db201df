// "GPU-01020304-0506-0708-090a-0b0c0d0e0f10": a device's UUID as NVML and CUDA_VISIBLE_DEVICES write it.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

namespace carve::guest {

inline constexpr size_t uuid_text_size = 41;  // Including the terminating zero.

inline void uuid_text(const uint8_t (&uuid)[16], char (&text)[uuid_text_size]) {
  constexpr char digits[] = "0123456789abcdef";
  memcpy(text, "GPU-", 4);
  char* out = text + 4;
  for (unsigned i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
    *out++ = digits[uuid[i] >> 4];
    *out++ = digits[uuid[i] & 15];
  }
  *out = 0;
}

}  // namespace carve::guest
