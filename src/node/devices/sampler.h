// Samples NVML on request, in a thread of its own, because a faulty device can hold a call for seconds and
// the agent must not wait. The loop requests a sample and is notified through an eventfd; one sample is taken
// at a time. A sample of 2 devices takes about 100 us.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "node/devices/nvml_library.h"
#include "os/fd.h"

namespace carve::node {

struct Sample {
  uint64_t number = 0;
  int64_t begun_ns = 0, ended_ns = 0;  // CLOCK_MONOTONIC
  std::vector<DeviceSample> devices;   // In the order of `indexes`.
  std::vector<std::pair<unsigned, unsigned>> xids;
};

class Sampler {
 public:
  Sampler(Nvml& nvml, std::vector<unsigned> indexes);  // `indexes` are NVML's.
  ~Sampler();  // Waits at most 2 s for a running call, then leaves the thread behind.
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  bool ask();  // False: the last sample is still being taken.
  int ready_fd() const;
  std::optional<Sample> take();        // The newest finished sample, once.
  int64_t under_way_since_ns() const;  // 0: no sample is being taken.

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace carve::node
