#include "node/devices/sampler.h"

#include <sys/eventfd.h>

#include <chrono>
#include <csignal>

#include "os/clock.h"
#include "os/mutex.h"

namespace carve::node {

// Outlives the sampler if a call into the driver never returns. No other lock is taken with `mutex` held.
struct Sampler::Shared {
  void run(Nvml& nvml, const std::vector<unsigned>& indexes) EXCLUDES(mutex);

  os::Mutex mutex;
  os::ConditionVariable changed;
  bool asked GUARDED_BY(mutex) = false;
  bool ending GUARDED_BY(mutex) = false;
  bool ended GUARDED_BY(mutex) = false;
  int64_t since GUARDED_BY(mutex) = 0;
  std::optional<Sample> finished GUARDED_BY(mutex);
  os::Fd ready{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

void Sampler::Shared::run(Nvml& nvml, const std::vector<unsigned>& indexes) {
  uint64_t number = 0;
  for (;;) {
    {
      const os::MutexLock lock(mutex);
      while (!asked && !ending) changed.wait(mutex);
      if (ending) break;
    }
    Sample sample;
    sample.number = ++number;
    sample.begun_ns = os::monotonic_ns();
    for (const unsigned index : indexes) sample.devices.push_back(nvml.sample(index));
    sample.xids = nvml.xids();
    sample.ended_ns = os::monotonic_ns();
    const os::MutexLock lock(mutex);
    finished = std::move(sample);
    asked = false;
    since = 0;
    const uint64_t one = 1;
    // The counter is full, because the loop has not read it yet.
    if (write(ready.get(), &one, sizeof one) < 0) continue;
  }
  const os::MutexLock lock(mutex);
  ended = true;
  changed.notify_all();
}

Sampler::Sampler(Nvml& nvml, std::vector<unsigned> indexes) : shared_(std::make_shared<Shared>()) {
  // The loop handles signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ =
      std::thread([shared = shared_, &nvml, indexes = std::move(indexes)] { shared->run(nvml, indexes); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Sampler::~Sampler() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  bool ended = false;
  {
    const os::MutexLock lock(shared_->mutex);
    shared_->ending = true;
    shared_->changed.notify_all();
    while (!shared_->ended && shared_->changed.wait_until(shared_->mutex, deadline)) {}
    ended = shared_->ended;
  }
  if (ended)
    thread_.join();
  else
    thread_.detach();
}

bool Sampler::ask() {
  const os::MutexLock lock(shared_->mutex);
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
  const os::MutexLock lock(shared_->mutex);
  return std::exchange(shared_->finished, std::nullopt);
}

int64_t Sampler::under_way_since_ns() const {
  const os::MutexLock lock(shared_->mutex);
  return shared_->since;
}

}  // namespace carve::node
