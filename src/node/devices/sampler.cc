#include "node/devices/sampler.h"

#include <atomic>

#include "os/clock.h"

namespace carve::node {

// The state shared with the thread, which outlives the sampler if a call into the driver never returns.
struct Sampler::Shared {
  os::LoopPoster loop;
  Nvml& nvml;
  const std::vector<unsigned> indexes;
  uint64_t number = 0;  // Used only by the thread.
  std::atomic<int64_t> since_ns = 0;

  Sample take() {
    Sample sample;
    sample.number = ++number;
    sample.begun_ns = os::monotonic_ns();
    for (const unsigned index : indexes) sample.devices.push_back(nvml.sample(index));
    sample.xids = nvml.xids();
    sample.ended_ns = os::monotonic_ns();
    return sample;
  }
};

Sampler::Sampler(const os::Loop& loop, Nvml& nvml, std::vector<unsigned> indexes)
    : shared_(std::make_shared<Shared>(loop.poster(), nvml, std::move(indexes))),
      worker_({.end_patience_ns = 2 * os::second}) {}

Sampler::~Sampler() = default;

bool Sampler::ask(std::function<void(const Sample&)> taken) {
  if (shared_->since_ns != 0) return false;
  shared_->since_ns = os::monotonic_ns();
  worker_.run([shared = shared_, lives = std::weak_ptr(lives_), taken = std::move(taken)] {
    const auto sample = std::make_shared<const Sample>(shared->take());
    shared->since_ns = 0;
    shared->loop.post([lives, taken, sample] {
      if (!lives.expired()) taken(*sample);
    });
  });
  return true;
}

int64_t Sampler::under_way_since_ns() const { return shared_->since_ns; }

}  // namespace carve::node
