// Asks NVML who uses how much, when it is told to, in a thread of its own: a sick device can hold a call for
// seconds, and the agent must not stand still with it. The loop asks for a sample and hears of it through an
// eventfd; while one is under way another is not begun. A sample of 2 devices costs about 100 us.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "node/devices/nvml.h"
#include "node/os/fd.h"

namespace carve::node {

struct Sample {
  uint64_t number = 0;
  int64_t begun_ns = 0, ended_ns = 0;  // CLOCK_MONOTONIC
  std::vector<DeviceSample> devices;   // In the order of `indexes`.
  std::vector<std::pair<unsigned, unsigned>> xids;
};

class Sampler {
 public:
  Sampler(Nvml& nvml, std::vector<unsigned> indexes);  // NVML's.
  ~Sampler();  // Waits for a call that is under way, at most 2 s; then leaves the thread behind.
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  bool ask();  // False: the last one is still under way.
  int ready_fd() const;
  std::optional<Sample> take();        // The newest finished one, once.
  int64_t under_way_since_ns() const;  // 0: none is.

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace carve::node
