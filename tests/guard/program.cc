// A program that requests device memory from the kernel driver without CUDA. It runs its arguments in order:
//   alloc MIB     request memory, and print the result: 0, the driver's status, or -errno
//   unread MIB    the same, with parameters that the guard cannot read
//   wait SECONDS
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver_requests.h"

int main(int argc, char** argv) {
  using guard_test::Driver;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const Driver rm = Driver::open("/dev/nvidiactl", "/dev/nvidia0", 0);
  if (!rm.is_ready()) {
    printf("cannot open the driver: %ld\n", rm.trouble);
    return 1;
  }
  for (int i = 1; i + 1 < argc; i += 2) {
    const uint64_t number = strtoull(argv[i + 1], nullptr, 10);
    const auto handle = static_cast<uint32_t>(i);
    if (strcmp(argv[i], "alloc") == 0) printf("alloc %s: %ld\n", argv[i + 1], rm.alloc(handle, number << 20));
    if (strcmp(argv[i], "unread") == 0)
      printf("unread %s: %ld\n", argv[i + 1], rm.alloc_unread(handle, number << 20));
    if (strcmp(argv[i], "wait") == 0) sleep(static_cast<unsigned>(number));
  }
}
