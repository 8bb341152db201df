// Copies and fills. Their bytes are summed for the agent by direction (ProcessWork::copied), which takes 6 ns
// per call. Work inside the device of 1 MiB and more uses the device's time like a kernel, so it is paced
// like one. Its estimate is keyed by kind and size class. Copies from or to the host are never paced: they
// run on copy engines, and a pageable copy waits for the program's own thread. A blocking copy from or to the
// host ends a thread's busy interval on the default stream, as a synchronisation does (CUDA driver API, "API
// synchronization behavior"). Fills and copies inside the device do not block even in their synchronous form.
//
// For a copy between unified addresses, only the driver knows which side is the host. Small copies count as
// inside the device; for copies of 1 MiB and more the driver is queried, which takes 100 ns.
#pragma once

#include <bit>

#include "guest/launch/gate.h"

namespace carve::guest {

enum class Direction : unsigned { to_device = 0, to_host = 1, inside = 2 };

inline constexpr uint64_t paced_bytes = 1 << 20;

struct Copy {
  Direction direction;
  uint64_t bytes;
  uint64_t stream;
  bool blocks = false;
  bool paced = true;  // For copies inside one device.

  // Returns the launch that represents copies of this kind and size class. The class is the two highest bits
  // of the size.
  Launch launch() const {
    const auto top = static_cast<unsigned>(std::bit_width(bytes));
    return {static_cast<uint64_t>(blocks) + 1, top * 2 + (bytes >> (top < 2 ? 0 : top - 2) & 1), ~uint64_t{1},
            0, stream};
  }
  bool is_paced() const { return paced && direction == Direction::inside && bytes >= paced_bytes; }
};

// `call()` is the driver's entry point.
template <class Call>
CUresult copied(const Copy& copy, Call call) {
  Process* p = attached();
  if (p == nullptr) return call();
  const auto made = [&] {
    const CUresult result = call();
    if (result == CUDA_SUCCESS)
      p->work->copied[static_cast<unsigned>(copy.direction)].fetch_add(copy.bytes, std::memory_order_relaxed);
    return result;
  };
  if (copy.is_paced() && !is_not_arbitrated()) {
    const Launch launch = copy.launch();
    return try_fast_launch(launch) ? made() : paced_by_waiting(launch, made);
  }
  if (!copy.blocks) return made();
  const Waiting waiting(copy.stream);
  return made();
}

}  // namespace carve::guest
