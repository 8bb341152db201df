#include "node/device_search.h"

#include <chrono>
#include <utility>

#include "os/thread_start.h"

namespace carve::node {

// The state shared with the thread, which outlives the search if a call into the driver never returns. While
// `mutex` is held, only LoopPoster's lock is taken.
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
  thread_ = os::start_thread([shared = shared_, search = std::move(search)] { shared->run(search); });
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

void DeviceSearch::when_found(const os::Loop& loop, std::function<void(Outcome<FoundDevices>)> found) {
  const auto deliver = [poster = loop.poster(), found = std::move(found), shared = std::weak_ptr(shared_)] {
    poster.post([found, shared] {
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
