#include "node/devices/sampler.h"

#include <sys/eventfd.h>

#include <csignal>

#include "os/clock.h"

namespace carve::node {

// Outlives the sampler if a call into the driver never returns.
struct Sampler::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false;
  bool ending = false;
  bool ended = false;
  int64_t since = 0;
  std::optional<Sample> finished;
  os::Fd ready{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

Sampler::Sampler(Nvml& nvml, std::vector<unsigned> indexes) : shared_(std::make_shared<Shared>()) {
  // The loop handles signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([shared = shared_, &nvml, indexes = std::move(indexes)] {
    uint64_t number = 0;
    for (;;) {
      {
        std::unique_lock lock(shared->mutex);
        shared->changed.wait(lock, [&] { return shared->asked || shared->ending; });
        if (shared->ending) break;
      }
      Sample sample;
      sample.number = ++number;
      sample.begun_ns = os::monotonic_ns();
      for (const unsigned index : indexes) sample.devices.push_back(nvml.sample(index));
      sample.xids = nvml.xids();
      sample.ended_ns = os::monotonic_ns();
      const std::lock_guard lock(shared->mutex);
      shared->finished = std::move(sample);
      shared->asked = false;
      shared->since = 0;
      const uint64_t one = 1;
      // The counter is full, because the loop has not read it yet.
      if (write(shared->ready.get(), &one, sizeof one) < 0) continue;
    }
    const std::lock_guard lock(shared->mutex);
    shared->ended = true;
    shared->changed.notify_all();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Sampler::~Sampler() {
  bool ended = false;
  {
    std::unique_lock lock(shared_->mutex);
    shared_->ending = true;
    shared_->changed.notify_all();
    ended = shared_->changed.wait_for(lock, std::chrono::seconds(2), [&] { return shared_->ended; });
  }
  if (ended)
    thread_.join();
  else
    thread_.detach();
}

bool Sampler::ask() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->asked) return false;
  shared_->asked = true;
  shared_->since = os::monotonic_ns();
  shared_->changed.notify_all();
  return true;
}

int Sampler::ready_fd() const { return shared_->ready.get(); }

std::optional<Sample> Sampler::take() {
  uint64_t count = 0;
  if (read(shared_->ready.get(), &count, sizeof count) < 0) return std::nullopt;
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->finished, std::nullopt);
}

int64_t Sampler::under_way_since_ns() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->since;
}

}  // namespace carve::node
