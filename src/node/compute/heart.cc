#include "node/compute/heart.h"

#include "os/clock.h"
#include "os/log.h"
#include "os/thread_start.h"

namespace carve::node {
namespace {

void beat(shm::Heartbeat& page) {
  page.monotonic_ns.store(static_cast<uint64_t>(os::monotonic_ns()), std::memory_order_release);
}

}  // namespace

Heart::Heart(shm::Heartbeat& page, const os::LoopTurns& turns) : page_(page), turns_(turns) {
  beat(page_);
  thread_ = os::start_thread([this] { run(); });
}

Heart::~Heart() {
  {
    const os::MutexLock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Heart::run() {
  LongTurns turns;
  for (;;) {
    beat(page_);
    if (const int64_t lasted = turns.to_log(turns_.began_ns.load(), os::monotonic_ns()); lasted != 0)
      os::log::warning("the agent's loop has been busy for {} ms; its API does not respond in the meantime",
                       lasted / os::millisecond);
    const auto next = std::chrono::steady_clock::now() + std::chrono::nanoseconds(beat_interval_ns);
    const os::MutexLock lock(mutex_);
    while (!ends_ && changed_.wait_until(mutex_, next)) {}
    if (ends_) return;
  }
}

}  // namespace carve::node
