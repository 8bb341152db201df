// Preloaded into the agent of the virtual machine: a context of the simulated CUDA driver takes 64 MiB of the
// stand-in module's first device, as a real context takes memory from the kernel driver.
#include <cstdio>
#include <cstring>

#include "driver_requests.h"

namespace {

__attribute__((constructor)) void begin() {
  char words[4096] = "";
  FILE* const file = fopen("/proc/self/cmdline", "r");
  const size_t bytes = file != nullptr ? fread(words, 1, sizeof words - 1, file) : 0;
  if (file != nullptr) fclose(file);
  if (memmem(words, bytes, "--measure-context", 17) == nullptr) return;
  static const auto rm = guard_test::Driver::open("/dev/nvidiactl", "/dev/nvidia0", 0);
  if (rm.is_ready()) rm.alloc(1, 64 << 20);
}

}  // namespace
