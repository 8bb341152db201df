#include "os/loop_poster.h"

#include <utility>
#include <vector>

#include "core/invariant.h"
#include "os/mutex.h"
#include "os/wakeup.h"

namespace carve::os {

// While `mutex` is held, no other lock is taken.
struct LoopPoster::Shared {
  const Wakeup wakeup;
  Mutex mutex;
  std::vector<std::function<void()>> calls GUARDED_BY(mutex);
  bool has_ended GUARDED_BY(mutex) = false;

  std::vector<std::function<void()>> take() EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return std::exchange(calls, {});
  }
};

LoopPoster::LoopPoster() : shared_(std::make_shared<Shared>()) {
  invariant(shared_->wakeup.is_open(), "a loop is created while descriptors are available");
}

int LoopPoster::fd() const { return shared_->wakeup.fd(); }

void LoopPoster::post(std::function<void()> call) const {
  const MutexLock lock(shared_->mutex);
  if (shared_->has_ended) return;
  shared_->calls.push_back(std::move(call));
  shared_->wakeup.set();
}

void LoopPoster::run() const {
  const auto shared = shared_;
  shared->wakeup.take();
  for (const auto& call : shared->take()) call();
}

void LoopPoster::end() const {
  std::vector<std::function<void()>> dropped;  // Destroyed without holding the lock, with all that they own.
  const MutexLock lock(shared_->mutex);
  shared_->has_ended = true;
  dropped.swap(shared_->calls);
}

}  // namespace carve::os
