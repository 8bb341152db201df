#include "node/device_search.h"

#include <chrono>
#include <csignal>
#include <utility>

namespace carve::node {

// Outlives the search if a call into the driver never returns. No other lock is taken with `mutex` held, but
// for that of LoopCalls.
struct DeviceSearch::Shared {
  os::Mutex mutex;
  os::ConditionVariable changed;
  bool ended GUARDED_BY(mutex) = false;
  std::optional<Outcome<FoundDevices>> found GUARDED_BY(mutex);
  std::function<void()> deliver GUARDED_BY(mutex);  // Posts the result to the loop.

  void run(const Search& search) EXCLUDES(mutex) {
    auto result = search();
    const os::MutexLock lock(mutex);
    found = std::move(result);
    ended = true;
    changed.notify_all();
    if (deliver) deliver();
  }
  std::optional<Outcome<FoundDevices>> take() EXCLUDES(mutex) {
    const os::MutexLock lock(mutex);
    return std::exchange(found, std::nullopt);
  }
};

DeviceSearch::DeviceSearch(Search search) : shared_(std::make_shared<Shared>()) {
  // The loop handles signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([shared = shared_, search = std::move(search)] { shared->run(search); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

DeviceSearch::~DeviceSearch() {
  bool ended = false;
  {
    const os::MutexLock lock(shared_->mutex);
    shared_->deliver = nullptr;
    ended = shared_->ended;
  }
  if (ended)
    thread_.join();
  else
    thread_.detach();
}

std::optional<Outcome<FoundDevices>> DeviceSearch::wait(int64_t patience_ns) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience_ns);
  {
    const os::MutexLock lock(shared_->mutex);
    while (!shared_->ended)
      if (patience_ns < 0)
        shared_->changed.wait(shared_->mutex);
      else if (!shared_->changed.wait_until(shared_->mutex, until))
        break;
  }
  return shared_->take();
}

void DeviceSearch::when_found(os::LoopCalls& calls, std::function<void(Outcome<FoundDevices>)> found) {
  const auto deliver = [&calls, found = std::move(found), shared = std::weak_ptr(shared_)] {
    calls.post([found, shared] {
      const auto still = shared.lock();
      if (auto result = still ? still->take() : std::nullopt) found(std::move(*result));
    });
  };
  const os::MutexLock lock(shared_->mutex);
  if (shared_->ended)
    deliver();
  else
    shared_->deliver = deliver;
}

}  // namespace carve::node
