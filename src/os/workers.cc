#include "os/workers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "os/clock.h"
#include "os/fd.h"
#include "os/mutex.h"
#include "os/thread_start.h"

namespace carve::os {
namespace {

constexpr int64_t check_interval_ns = 200 * millisecond;
constexpr std::chrono::seconds end_patience{2};

}  // namespace

// Outlives the workers if a thread never returns. While `mutex` is held, no other lock is taken.
struct Workers::Shared {
  Mutex mutex;
  ConditionVariable changed;
  std::vector<std::pair<uint64_t, Act>> finished GUARDED_BY(mutex);
  size_t threads GUARDED_BY(mutex) = 0;
  Fd ready{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void carry_out(uint64_t number, std::function<Act()> work) EXCLUDES(mutex) {
    Act act = work();
    work = nullptr;  // Destroys the function before the thread counts as ended.
    const MutexLock lock(mutex);
    finished.emplace_back(number, std::move(act));
    --threads;
    changed.notify_all();
    eventfd_write(ready.get(), 1);
  }
};

Workers::Workers(Loop& loop, int64_t patience_ns)
    : loop_(loop), patience_ns_(patience_ns), shared_(std::make_shared<Shared>()) {
  loop_.watch(shared_->ready.get(), EPOLLIN, [this](uint32_t) { finish(); });
  loop_.every(std::min(check_interval_ns, patience_ns), [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) end_late();
  });
}

Workers::~Workers() {
  loop_.forget(shared_->ready.get());
  const auto deadline = std::chrono::steady_clock::now() + end_patience;
  const MutexLock lock(shared_->mutex);
  while (shared_->threads > late_ && shared_->changed.wait_until(shared_->mutex, deadline)) {}
}

bool Workers::run(const std::string& key, std::function<Act()> work, Act late) {
  const auto waiting = std::ranges::count_if(
      tasks_, [&](const auto& one) { return one.second.key == key && one.second.begun_ns == 0; });
  if (static_cast<size_t>(waiting) >= max_waiting_of_key || tasks_.size() >= max_waiting || late_ >= max_late)
    return false;
  tasks_.emplace(
      next_++, Task{.key = key, .work = std::move(work), .late = std::move(late), .came_ns = monotonic_ns()});
  begin_next();
  return true;
}

void Workers::begin_next() {
  for (auto& [number, task] : tasks_) {
    if (running_ >= max_running || late_ >= max_late) return;
    if (task.begun_ns != 0) continue;
    const bool has_other = std::ranges::any_of(
        tasks_, [&](const auto& one) { return one.second.begun_ns != 0 && one.second.key == task.key; });
    if (has_other) continue;
    if (!begin(number, task.work)) return;
    task.work = nullptr;
    task.begun_ns = monotonic_ns();
    ++running_;
  }
}

bool Workers::begin(uint64_t number, const std::function<Act()>& work) {
  {
    const MutexLock lock(shared_->mutex);
    ++shared_->threads;
  }
  try {
    start_thread([shared = shared_, number, work = work]() mutable {
      shared->carry_out(number, std::move(work));
    }).detach();
    return true;
  } catch (const std::system_error&) {
    const MutexLock lock(shared_->mutex);
    --shared_->threads;
    return false;
  }
}

void Workers::finish() {
  eventfd_t count = 0;
  eventfd_read(shared_->ready.get(), &count);
  std::vector<std::pair<uint64_t, Act>> finished;
  {
    const MutexLock lock(shared_->mutex);
    finished.swap(shared_->finished);
  }
  for (auto& [number, act] : finished) {
    const auto task = tasks_.find(number);
    if (task == tasks_.end()) continue;
    const bool was_late = task->second.is_late;
    --(was_late ? late_ : running_);
    tasks_.erase(task);
    if (!was_late && act) act();
  }
  begin_next();
}

void Workers::end_late() {
  const int64_t now = monotonic_ns();
  std::vector<Act> late;
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    Task& one = task->second;
    const bool waits = one.begun_ns == 0;
    if (one.is_late || now - (waits ? one.came_ns : one.begun_ns) < patience_ns_) {
      ++task;
      continue;
    }
    late.push_back(std::move(one.late));
    if (waits) {
      task = tasks_.erase(task);
      continue;
    }
    one.is_late = true;
    --running_;
    ++late_;
    ++task;
  }
  for (const Act& act : late)
    if (act) act();
  begin_next();
}

}  // namespace carve::os
