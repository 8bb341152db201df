// Samples NVML on request in its own thread, because a faulty device can block a call for seconds and the
// agent must not wait. The loop requests a sample and receives it in a later turn. Only one sample is taken
// at a time. A sample of 2 devices takes about 100 us.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "node/devices/nvml_library.h"
#include "os/loop.h"
#include "os/worker.h"

namespace carve::node {

struct Sample {
  uint64_t number = 0;
  int64_t begun_ns = 0, ended_ns = 0;  // CLOCK_MONOTONIC
  std::vector<DeviceSample> devices;   // In the order of `indexes`.
  std::vector<std::pair<unsigned, unsigned>> xids;
};

class Sampler {
 public:
  Sampler(const os::Loop&, Nvml& nvml, std::vector<unsigned> indexes);  // `indexes` are NVML's indexes.
  ~Sampler();  // Waits at most 2 s for a running call, then leaves the thread running.
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Takes a sample and calls `taken` with it on the loop, unless the sampler is destroyed first. While the
  // previous sample is still being taken, does nothing and returns false.
  bool ask(std::function<void(const Sample&)> taken);
  int64_t under_way_since_ns() const;  // 0 if no sample is being taken.

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // Posted results check it.
  os::Worker worker_;
};

}  // namespace carve::node
