// A static program that allocates memory on a simulated device without libcuda, as a program on a real
// machine could with /dev/nvidia0. No library can be loaded into it, and it makes no call that could be
// intercepted.
//
//   escape_raw MIB SECONDS
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "sim/model/memory.h"
#include "sim/set/set.h"

using namespace carve::sim;

int main(int argc, char** argv) {
  Set set;
  uint32_t slot = 0;
  uint64_t generation = 0;
  const char* directory = set_directory();
  if (argc != 3 || directory == nullptr || open_set(directory, &set) != Opened::yes ||
      !attach(set, &slot, &generation)) {
    fprintf(stderr, "escape_raw: MIB SECONDS, and SIMGPU_DIR must name a set\n");
    return 2;
  }
  Device& device = *set.devices[0];
  unsigned context = 0;
  Refusal refusal;
  {
    const Locked locked(device);
    refusal = open_context(device, slot, generation, now_ns(), &context);
    if (refusal == Refusal::none) refusal = take(device, context, strtoull(argv[1], nullptr, 10) << 20);
  }
  if (refusal != Refusal::none) return 1;
  printf("holds %s MiB\n", argv[1]);
  fflush(stdout);
  sleep(static_cast<unsigned>(atoi(argv[2])));
  return 0;
}
