#include "os/loop.h"

#include <algorithm>
#include <utility>

#include "os/clock.h"

namespace carve::os {

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  watch(poster_.fd(), EPOLLIN, [this](uint32_t) { poster_.run(); });
}

Loop::~Loop() { poster_.end(); }

void Loop::watch(int fd, uint32_t events, std::function<void(uint32_t)> call) {
  forget(fd);
  const uint64_t number = next_++;
  watched_.emplace(number, Watched{fd, events, std::move(call)});
  number_of_[fd] = number;
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Loop::watch_for(int fd, uint32_t events) {
  const auto found = number_of_.find(fd);
  if (found == number_of_.end()) return;
  if (std::exchange(watched_.at(found->second).events, events) == events) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = found->second;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::forget(int fd) {
  const auto found = number_of_.find(fd);
  if (found == number_of_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(found->second);
  number_of_.erase(found);
}

void Loop::every(int64_t ns, std::function<void()> call) {
  timers_.emplace(monotonic_ns() + ns, Timer{ns, std::move(call)});
}

void Loop::after(int64_t ns, std::function<void()> call) {
  timers_.emplace(monotonic_ns() + ns, Timer{0, std::move(call)});
}

void Loop::run_due_timers() {
  const int64_t now = monotonic_ns();
  while (!stopped_ && !timers_.empty() && timers_.begin()->first <= now) {
    auto due = timers_.extract(timers_.begin());
    due.mapped().call();
    if (due.mapped().period == 0) continue;
    // A late timer runs only once, however many periods have passed.
    due.key() = std::max(due.key() + due.mapped().period, monotonic_ns() + 1);
    timers_.insert(std::move(due));
  }
}

void Loop::run() {
  while (!stopped_) {
    int timeout = -1;
    if (!timers_.empty())
      timeout = static_cast<int>(std::clamp<int64_t>(
          (timers_.begin()->first - monotonic_ns() + millisecond - 1) / millisecond, 0, 60'000));
    epoll_event events[64];
    const int count = epoll_wait(epoll_.get(), events, 64, timeout);
    turns_.began_ns.store(monotonic_ns(), std::memory_order_relaxed);
    for (int i = 0; i < count && !stopped_; ++i) {
      const uint64_t key = events[i].data.u64;  // A copy, because the kernel's struct is packed.
      const auto found = watched_.find(key);
      if (found == watched_.end()) continue;
      const auto call = found->second.call;  // A copy, because the callback may forget itself.
      call(events[i].events);
    }
    run_due_timers();
    const int64_t took = monotonic_ns() - turns_.began_ns.exchange(0, std::memory_order_relaxed);
    if (took > turns_.longest_ns.load(std::memory_order_relaxed))
      turns_.longest_ns.store(took, std::memory_order_relaxed);
  }
  stopped_ = false;
}

}  // namespace carve::os
